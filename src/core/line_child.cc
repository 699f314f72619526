// SPDX-License-Identifier: Apache-2.0
//
// One socket is the child's standard input and output: a write to a child that has ended is an
// error of send(), not a SIGPIPE.
#include "core/line_child.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/check.h"

extern char** environ;

namespace mc {
namespace {

constexpr size_t kReadBytes = 1 << 16;

Result<pid_t> spawn(const std::vector<std::string>& argv, int channel) {
  std::vector<char*> pointers;
  for (const std::string& word : argv) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, channel, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, channel, STDOUT_FILENO);
  pid_t pid = -1;
  errno = ::posix_spawnp(&pid, pointers[0], &actions, nullptr, pointers.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (errno != 0) return system_error(ErrorCode::kInvalidInput, "cannot start " + argv[0]);
  return pid;
}

}  // namespace

Result<std::unique_ptr<LineChild>> LineChild::start(const std::vector<std::string>& argv,
                                                    AtEnd at_end) {
  MC_CHECK(!argv.empty());
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return system_error(ErrorCode::kUnavailable, "cannot make a socket for " + argv[0]);
  }
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  auto pid = spawn(argv, theirs.get());
  if (!pid) return pid.error();
  MC_CHECK(*pid > 0);  // The pid is a target of kill() later.
  return std::unique_ptr<LineChild>(new LineChild(std::move(ours), *pid, at_end));
}

LineChild::~LineChild() {
  hang_up();
  if (at_end_ == AtEnd::kTerminate) ::kill(pid_, SIGTERM);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void LineChild::hang_up() { ::shutdown(channel_.get(), SHUT_RDWR); }

Status LineChild::send(std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(channel_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return system_error(ErrorCode::kUnavailable, "the child process ended");
    text.remove_prefix(static_cast<size_t>(sent));
  }
  return ok();
}

Result<std::string> LineChild::ask(std::string_view line) {
  MC_CHECK(line.find('\n') == std::string_view::npos);
  if (const Status sent = send(std::string(line) + "\n"); !sent) return sent.error();
  return receive();
}

Result<std::string> LineChild::receive() {
  size_t searched = 0;
  for (;;) {
    if (const size_t end = rest_.find('\n', searched); end != std::string::npos) {
      std::string line = rest_.substr(0, end);
      rest_.erase(0, end + 1);
      return line;
    }
    searched = rest_.size();
    if (searched > kLineBytesMax) return Error{ErrorCode::kProtocol, "a line is too long"};
    std::string block(kReadBytes, '\0');
    const ssize_t got = ::recv(channel_.get(), block.data(), block.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Error{ErrorCode::kUnavailable, "the child process ended"};
    rest_.append(block, 0, static_cast<size_t>(got));
  }
}

}  // namespace mc
