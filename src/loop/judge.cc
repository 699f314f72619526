// SPDX-License-Identifier: Apache-2.0
//
// One socket is the child's standard input and output.  A thread writes, so that a child that is
// busy cannot block who asks; a thread reads.
#include "loop/judge.h"

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>
#include <variant>

#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/hash.h"
#include "task/verdict_json.h"

namespace mc::loop {
namespace {

using Json = nlohmann::json;

constexpr int kAsksMax = 3;  // Of one question, while its verdict is infra.
constexpr size_t kReplyBytesMax = size_t{64} << 20;
constexpr size_t kReadBytes = 1 << 16;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Error strange(const std::string& what) {
  return Error{ErrorCode::kProtocol, "the verifier's reply " + what};
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
  if (errno != 0) return system_error(ErrorCode::kInvalidInput, "cannot start " + command[0]);
  return pid;
}

// "KEY:n": the n-th time that a question is asked.
std::string key_of(const std::string& id) { return id.substr(0, id.find(':')); }

}  // namespace

Result<Judgement> parse_reply(const std::string& line, const rl::TrainingScoreOptions& options) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return strange("is no JSON object");
  if (json.contains("error")) {
    const Json& error = json["error"];
    return Error{ErrorCode::kInvalidInput, "the verifier refuses a question: " +
                                               (error.is_string() ? error.get<std::string>() : "")};
  }
  if (!json.contains("verdict") || !json.contains("feedback") || !json["feedback"].is_string()) {
    return strange("has no verdict or no feedback");
  }
  MC_TRY(const task::Verdict verdict, task::verdict_from_json(dump(json["verdict"])), "a reply");
  Judgement judgement;
  judgement.outcome = task::outcome_name(verdict.outcome);
  judgement.s = rl::training_score(verdict, options);
  judgement.stage = rl::failed_stage(verdict.outcome);
  if (const auto* wrong = std::get_if<task::Wrong>(&verdict.outcome)) judgement.q = wrong->q;
  if (std::holds_alternative<task::Passed>(verdict.outcome)) judgement.q = 1;
  judgement.feedback = json["feedback"].get<std::string>();
  return judgement;
}

Result<std::unique_ptr<Judge>> Judge::start(std::vector<std::string> command,
                                            const rl::TrainingScoreOptions& options) {
  MC_CHECK(!command.empty());
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return system_error(ErrorCode::kUnavailable, "cannot make a socket for the verifier");
  }
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  MC_TRY(const pid_t child, spawn(std::move(command), theirs.get()), "the verifier");
  return std::unique_ptr<Judge>(new Judge(std::move(ours), child, options));
}

Judge::Judge(Fd channel, pid_t child, const rl::TrainingScoreOptions& options)
    : channel_(std::move(channel)), child_(child), options_(options) {
  writer_ = std::thread([this] { write_questions(); });
  reader_ = std::thread([this] { read_replies(); });
}

Judge::~Judge() {
  {
    const std::lock_guard lock(mutex_);
    if (!ended_) ended_ = Error{ErrorCode::kUnavailable, "the verifier was stopped"};
  }
  changed_.notify_all();
  ::shutdown(channel_.get(), SHUT_RDWR);
  writer_.join();
  reader_.join();
  ::kill(child_, SIGTERM);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::string Judge::ask(const task::Task& task, const std::string& answer) {
  const std::string key = content_hash({task.code, answer});
  const std::lock_guard lock(mutex_);
  Case& one = cases_[key];
  if (one.num_asked == 0) {
    one.question = "\"task\":" + dump({{"id", task.id}, {"code", task.code}}) +
                   ",\"answer\":" + dump(answer) + "}\n";
    enqueue(key, one);
  }
  return key;
}

// The id is of the content, so a seeded verifier says the same of it in every run.
void Judge::enqueue(const std::string& key, Case& one) {
  lines_.push_back("{\"id\":\"" + key + ":" + std::to_string(one.num_asked++) + "\"," +
                   one.question);
  changed_.notify_all();
}

Result<Judgement> Judge::wait(const std::string& key) {
  std::unique_lock lock(mutex_);
  const auto found = cases_.find(key);
  MC_CHECK(found != cases_.end());
  changed_.wait(lock, [&] { return found->second.judgement || ended_; });
  if (found->second.judgement) return *found->second.judgement;
  return *ended_;
}

void Judge::write_questions() {
  for (;;) {
    std::string line;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !lines_.empty() || ended_; });
      if (ended_) return;
      line = std::move(lines_.front());
      lines_.pop_front();
    }
    for (std::string_view rest = line; !rest.empty();) {
      const ssize_t sent = ::send(channel_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return;  // The reader sees the end too.
      rest.remove_prefix(static_cast<size_t>(sent));
    }
  }
}

void Judge::read_replies() {
  std::string text;
  std::string part(kReadBytes, '\0');
  for (;;) {
    const ssize_t got = ::recv(channel_.get(), part.data(), part.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || text.size() > kReplyBytesMax) break;
    text.append(part, 0, static_cast<size_t>(got));
    size_t start = 0;
    for (size_t end; (end = text.find('\n', start)) != std::string::npos; start = end + 1) {
      take(text.substr(start, end - start));
    }
    text.erase(0, start);
  }
  const std::lock_guard lock(mutex_);
  if (!ended_) ended_ = Error{ErrorCode::kUnavailable, "the verifier ended before its time"};
  changed_.notify_all();
}

void Judge::take(const std::string& line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  const bool has_id = json.is_object() && json.contains("id") && json["id"].is_string();
  const std::string key = has_id ? key_of(json["id"].get<std::string>()) : "";
  Result<Judgement> judgement = parse_reply(line, options_);
  const std::lock_guard lock(mutex_);
  const auto found = cases_.find(key);
  if (found == cases_.end()) {
    if (!ended_) ended_ = strange("is to no question: " + line.substr(0, 100));
  } else if (judgement && judgement->outcome == "infra" && found->second.num_asked < kAsksMax) {
    enqueue(key, found->second);
  } else {
    found->second.judgement = std::move(judgement);
    found->second.question.clear();
  }
  changed_.notify_all();
}

}  // namespace mc::loop
