// SPDX-License-Identifier: Apache-2.0
//
// One socket is the child's standard input and output: a write to a child that has ended is an
// error of send(), not a SIGPIPE.
#include "core/line_child.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

#include "core/check.h"
#include "core/process.h"

namespace mc {
namespace {

constexpr size_t kReadBytes = 1 << 16;

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
  auto pid = start_program(
      {.argv = argv, .descriptors = {{theirs.get(), STDIN_FILENO}, {theirs.get(), STDOUT_FILENO}}});
  if (!pid) return invalid(pid.error().message);
  return std::unique_ptr<LineChild>(new LineChild(std::move(ours), *pid, at_end));
}

LineChild::~LineChild() {
  hang_up();
  if (at_end_ == AtEnd::kTerminate) ::kill(pid_, SIGTERM);
  (void)wait_for_end(pid_);
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

Result<std::string> LineChild::call(std::string_view line) {
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
