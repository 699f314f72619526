// SPDX-License-Identifier: Apache-2.0
#include "forge/worker.h"

#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/check.h"

extern char** environ;

namespace mc::forge {

// A socket, so that writing to one that died is an error and not a signal.
Result<std::unique_ptr<Worker>> Worker::start(const std::vector<std::string>& argv) {
  int input[2] = {-1, -1}, output[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, input) != 0) {
    return system_error(ErrorCode::kUnavailable, "a socket for a verifier");
  }
  Fd to(input[0]), its_input(input[1]);
  if (::pipe2(output, O_CLOEXEC) != 0) {
    return system_error(ErrorCode::kUnavailable, "a pipe for a verifier");
  }
  Fd from(output[0]), its_output(output[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, its_input.get(), 0);
  posix_spawn_file_actions_adddup2(&actions, its_output.get(), 1);
  std::vector<char*> pointers;
  for (const std::string& argument : argv) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  pid_t pid = -1;
  errno = ::posix_spawnp(&pid, pointers[0], &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (errno != 0) return system_error(ErrorCode::kUnavailable, "cannot start " + argv[0]);
  return std::unique_ptr<Worker>(new Worker(pid, std::move(to), std::move(from)));
}

Worker::~Worker() {
  to_ = Fd();
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
}

Result<std::string> Worker::ask(std::string_view question) {
  MC_CHECK(question.find('\n') == std::string_view::npos);
  std::string line(question);
  line += '\n';
  for (size_t sent = 0; sent < line.size();) {
    const ssize_t size = ::send(to_.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return system_error(ErrorCode::kUnavailable, "the forge's verifier died");
    sent += static_cast<size_t>(size);
  }
  for (;;) {
    if (const size_t end = rest_.find('\n'); end != std::string::npos) {
      std::string answer = rest_.substr(0, end);
      rest_.erase(0, end + 1);
      return answer;
    }
    char block[1 << 16];
    const ssize_t size = ::read(from_.get(), block, sizeof block);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return Error{ErrorCode::kUnavailable, "the forge's verifier died"};
    rest_.append(block, static_cast<size_t>(size));
  }
}

}  // namespace mc::forge
