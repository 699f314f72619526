// SPDX-License-Identifier: Apache-2.0
#include "model/chat_template.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "core/layout.h"

namespace mc::model {
namespace {

using Json = nlohmann::json;

constexpr timeval kReplyTimeMax = {.tv_sec = 60, .tv_usec = 0};
constexpr size_t kReplyBytesMax = size_t{256} << 20;
constexpr size_t kReadBytes = 1 << 16;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Error failed(const std::string& what) {
  return Error{ErrorCode::kUnavailable, "the renderer of chat templates " + what};
}

Result<pid_t> spawn(std::vector<std::string> command, int channel) {
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, channel, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, channel, STDOUT_FILENO);
  pid_t pid = -1;
  errno = ::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (errno != 0) return system_error(ErrorCode::kUnavailable, "cannot start " + command[0]);
  return pid;
}

Result<std::string> text_of(const std::string& line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (json.is_object() && json.contains("text") && json["text"].is_string()) {
    return json["text"].get<std::string>();
  }
  if (json.is_object() && json.contains("error") && json["error"].is_string()) {
    return Error{ErrorCode::kInvalidInput,
                 "the chat template: " + json["error"].get<std::string>()};
  }
  return failed("replied with something else than JSON");
}

}  // namespace

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::start(
    const std::string& source, const std::map<std::string, std::string>& variables) {
  MC_TRY(const Layout layout, find_layout(), "the chat template");
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return system_error(ErrorCode::kUnavailable, "cannot make a socket for the chat template");
  }
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  ::setsockopt(ours.get(), SOL_SOCKET, SO_RCVTIMEO, &kReplyTimeMax, sizeof kReplyTimeMax);
  const char* python = std::getenv("MC_PYTHON");
  MC_TRY(const pid_t child,
         spawn({python != nullptr ? python : "python3", layout.share("harness") / "chat/render.py"},
               theirs.get()),
         "the chat template");
  std::unique_ptr<ChatTemplate> made(new ChatTemplate(std::move(ours), child));
  MC_TRY_VOID(made->exchange(dump({{"template", source}, {"variables", variables}})), "");
  return made;
}

ChatTemplate::~ChatTemplate() {
  ::kill(child_, SIGKILL);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<std::string> ChatTemplate::render(std::span<const Message> messages, ChatEnd end) {
  Json request;
  request["messages"] = Json::array();
  for (const Message& message : messages) {
    request["messages"].push_back({{"role", message.role}, {"content", message.content}});
  }
  request["add_generation_prompt"] = end == ChatEnd::kPrompt;
  const std::lock_guard lock(mutex_);
  return exchange(dump(request));
}

Result<std::string> ChatTemplate::exchange(const std::string& line) {
  const std::string request = line + "\n";
  for (std::string_view rest = request; !rest.empty();) {
    const ssize_t sent = ::send(channel_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return failed("ended; does $MC_PYTHON have jinja2?");
    rest.remove_prefix(static_cast<size_t>(sent));
  }
  std::string part(kReadBytes, '\0');
  for (size_t end; (end = unread_.find('\n')) == std::string::npos;) {
    const ssize_t got = ::recv(channel_.get(), part.data(), part.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("took more than a minute");
    if (got == 0) return failed("ended; does $MC_PYTHON have jinja2?");
    if (unread_.size() > kReplyBytesMax) return failed("replied with too much text");
    unread_.append(part, 0, static_cast<size_t>(got));
  }
  const size_t end = unread_.find('\n');
  const std::string reply = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return text_of(reply);
}

}  // namespace mc::model
