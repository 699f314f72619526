// SPDX-License-Identifier: Apache-2.0
#include "sandbox/run.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "core/cancel.h"
#include "core/check.h"
#include "core/fd.h"
#include "core/process.h"

namespace mc::sandbox {
namespace {

using Clock = Child::Clock;

constexpr int kCannotExecuteCode = 126;
constexpr size_t kBlockBytes = 1 << 16;
constexpr int kBlocksMax = 32;

void reset_signals() {
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// The arguments of execve(), made before the fork: under the program's memory limit, this process
// may already be too large to allocate anything.
struct Image {
  explicit Image(const Command& command)
      : directory(command.directory.c_str()),
        argv(pointers_to(command.argv)),
        environment(pointers_to(command.environment)) {}
  const char* directory;
  std::vector<char*> argv;
  std::vector<char*> environment;
};

// Executes the program in the sandbox.  Writes errno to `failure`, which a successful exec closes.
int execute(const Image& image, const Command& command, int out, int err, int failure) {
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  for (const int kept : command.descriptors) fcntl(kept, F_SETFD, 0);
  reset_signals();
  if (chdir(image.directory) == 0) {
    execve(image.argv[0], image.argv.data(), image.environment.data());
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(failure, &error, sizeof error);
  return kCannotExecuteCode;
}

// Reads the available data, but at most kBlocksMax blocks of endless output: more than a pipe can
// hold, and soon done.  Closes the descriptor at end of file.
template <class Take>
void drain(Fd& fd, const Take& take) {
  std::array<char, kBlockBytes> block;
  for (int i = 0; i < kBlocksMax && fd.is_open(); ++i) {
    const ssize_t got = read(fd.get(), block.data(), block.size());
    if (got > 0) take(std::string_view(block.data(), static_cast<size_t>(got)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) fd.reset();
  }
}

struct Streams {
  Pipe out;
  Pipe err;
  Pipe failure;
};

Result<Streams> make_streams() {
  Streams streams;
  for (Pipe* pipe : {&streams.out, &streams.err, &streams.failure}) {
    MC_TRY(*pipe, make_pipe(), "streams of a program");
    fcntl(pipe->reader.get(), F_SETFL, O_NONBLOCK);
  }
  return streams;
}

Result<Child> start(const Command& command, Streams& streams) {
  const int out = streams.out.writer.get();
  const int err = streams.err.writer.get();
  const int failure = streams.failure.writer.get();
  const auto is_free = [](int fd) { return fd > STDERR_FILENO; };
  MC_CHECK(std::ranges::all_of(command.descriptors, is_free));  // The others are replaced.
  const Image image(command);
  std::vector<int> kept = {out, err, failure};
  kept.insert(kept.end(), command.descriptors.begin(), command.descriptors.end());
  auto child = Child::start(command.profile, kept, [&](const auto&) {
    return execute(image, command, out, err, failure);
  });
  streams.out.writer.reset();
  streams.err.writer.reset();
  streams.failure.writer.reset();
  return child;
}

// Reads both streams until the child has ended or its deadline has passed; checks its limits in
// between.
Ending collect(const Command& command, Child& child, Streams& streams, Completed& completed,
               Clock::time_point deadline) {
  const auto take = [&command](bool is_error, Output& output) {
    return [&command, is_error, &output](std::string_view text) {
      output.append(text.data(), text.size());
      if (command.on_output) command.on_output(is_error, text);
    };
  };
  Fd& out = streams.out.reader;
  Fd& err = streams.err.reader;
  const auto drain_both = [&] {
    drain(out, take(false, completed.out));
    drain(err, take(true, completed.err));
  };
  for (;;) {
    pollfd fds[] = {{child.end_fd(), POLLIN, 0}, {out.get(), POLLIN, 0}, {err.get(), POLLIN, 0}};
    ::poll(fds, std::size(fds), static_cast<int>(kLookInterval.count()));
    drain_both();
    if (command.goes_on && !command.goes_on()) child.kill_tree();
    if (auto ending = child.look(deadline)) {
      drain_both();
      return *ending;
    }
  }
}

Error cannot_execute(const Command& command, int error) {
  const ErrorCode code = error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kUnavailable;
  return {code, "cannot run " + command.argv[0] + " in " + command.directory + ": " +
                    std::strerror(error)};
}

}  // namespace

Profile program_profile() {
  Profile profile;
  profile.allow_exec = true;
  profile.allow_fork = true;
  return profile;
}

void Output::append(const char* data, size_t size) {
  MC_CHECK(head_.size() <= head_max_);
  const size_t to_head = std::min(size, head_max_ - head_.size());
  head_.append(data, to_head);
  tail_.append(data + to_head, size - to_head);
  if (tail_.size() <= 2 * tail_max_) return;
  const size_t excess = tail_.size() - tail_max_;
  tail_.erase(0, excess);
  dropped_ += excess;
}

bool Output::is_truncated() const { return dropped_ > 0 || tail_.size() > tail_max_; }

std::string Output::text() const {
  if (!is_truncated()) return head_ + tail_;
  const size_t excess = tail_.size() - std::min(tail_.size(), tail_max_);
  return head_ + "\n[… " + std::to_string(dropped_ + excess) + " bytes left out …]\n" +
         tail_.substr(excess);
}

bool succeeded(const Completed& completed) {
  const auto* exited = std::get_if<Exited>(&completed.ending);
  return exited != nullptr && exited->code == 0;
}

Result<Completed> run(const Command& command) {
  if (command.argv.empty()) return Error{ErrorCode::kInvalidInput, "no program to run"};
  MC_TRY(Streams streams, make_streams(), "run " + command.argv[0]);
  const auto begin = Clock::now();
  MC_TRY(Child child, start(command, streams), "run " + command.argv[0]);
  Completed completed;
  completed.out = Output(command.output_bytes_max);
  completed.err = Output(command.output_bytes_max);
  completed.ending =
      collect(command, child, streams, completed, begin + command.profile.limits.wall);
  if (is_cancelled()) return Error{ErrorCode::kUnavailable, "cancelled"};
  completed.wall = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
  completed.usage = child.usage();
  int error = 0;
  if (read(streams.failure.reader.get(), &error, sizeof error) == sizeof error) {
    return cannot_execute(command, error);
  }
  return completed;
}

}  // namespace mc::sandbox
