// SPDX-License-Identifier: Apache-2.0
//
// States: running (pidfd_ open) and ended (pidfd_ closed, ending_ set).  Only reap() changes the
// state.  When a limit is exceeded, its ending is recorded before the kill, and stays.
#include "sandbox/child.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>
#include <vector>

#include "core/cancel.h"
#include "core/check.h"
#include "sandbox/enter.h"
#include "sandbox/tree.h"

namespace mc::sandbox {
namespace {

using Clock = Child::Clock;

constexpr std::chrono::milliseconds kHangupGrace{1'000};
constexpr std::chrono::milliseconds kSetupTimeMax{20'000};
constexpr int kSetupFailedCode = 125;

// The report of the forked processes to the parent: init's pid, then nothing, or the reason of the
// failure.
struct Report {
  pid_t init = 0;
  std::string failure;
};

void write_report(int fd, const void* data, size_t size) {
  [[maybe_unused]] const ssize_t written = write(fd, data, size);
}

[[noreturn]] void fail_setup(int fd, const Error& error) {
  const std::string text = error.message.substr(0, 2'000);
  write_report(fd, text.data(), text.size());
  _exit(kSetupFailedCode);
}

[[noreturn]] void run_init(const Profile& profile, SandboxHandle handle, std::vector<int> keep_fds,
                           Fd report, const Child::Body& body) noexcept {
  keep_fds.push_back(report.get());
  auto missing = enter(profile, std::move(handle), keep_fds);
  if (!missing) fail_setup(report.get(), missing.error());
  report.reset();
  _exit(body(*missing));
}

[[noreturn]] void run_launcher(const Profile& profile, std::span<const int> keep_fds, Fd report,
                               const Child::Body& body) noexcept {
  auto handle = unshare_namespaces(profile);
  pid_t init = 0;
  if (!handle) {
    write_report(report.get(), &init, sizeof init);
    fail_setup(report.get(), handle.error());
  }
  init = fork();
  if (init == 0) {
    run_init(profile, std::move(*handle), {keep_fds.begin(), keep_fds.end()}, std::move(report),
             body);
  }
  write_report(report.get(), &init, sizeof init);
  _exit(init > 0 ? 0 : kSetupFailedCode);
}

int poll_timeout(Clock::time_point until) {
  const auto left = until - Clock::now();
  if (left <= Clock::duration::zero()) return 0;
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
}

Report parse_report(const std::string& text) {
  Report report;
  if (text.size() < sizeof report.init) return {0, "the forked process died"};
  std::memcpy(&report.init, text.data(), sizeof report.init);
  report.failure = text.substr(sizeof report.init);
  return report;
}

// Reads until the writers have closed their ends, which also happens on success.  The launcher's
// part comes first, since init does nothing before the launcher has ended.
Report read_report(const Fd& fd) {
  const auto deadline = Clock::now() + kSetupTimeMax;
  std::string text;
  while (Clock::now() < deadline) {
    pollfd waiting{fd.get(), POLLIN, 0};
    if (::poll(&waiting, 1, poll_timeout(deadline)) <= 0) continue;
    char block[4096];
    const ssize_t got = read(fd.get(), block, sizeof block);
    if (got == 0) return parse_report(text);
    if (got > 0) text.append(block, static_cast<size_t>(got));
  }
  Report report = parse_report(text);
  report.failure = "entering the sandbox takes too long";
  return report;
}

bool has_bytes(int fd) {
  int num_bytes = 0;
  return ioctl(fd, FIONREAD, &num_bytes) == 0 && num_bytes > 0;
}

std::chrono::microseconds duration_of(const timeval& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

Ending ending_of(const siginfo_t& info, const Limits& limits, std::chrono::microseconds cpu) {
  if (info.si_code != CLD_EXITED) return Signaled{info.si_status};
  const auto ending = decode_init_status(info.si_status);
  if (const auto* exited = std::get_if<Exited>(&ending)) return *exited;
  const auto signaled = std::get<Signaled>(ending);
  const bool out_of_cpu =
      signaled.signal == SIGXCPU || (signaled.signal == SIGKILL && cpu >= limits.cpu);
  return out_of_cpu ? Ending(CpuExceeded{}) : Ending(signaled);
}

// The memory that the sandboxed process inherits.  Init has it until it forks the sandboxed
// process, and then releases it; from then on the sandboxed process has it.
uint64_t inherited_bytes(pid_t init) {
  const uint64_t before_fork = use_of(init).memory_bytes;
  return std::max(before_fork, use_of_descendants(init).memory_bytes);
}

bool holds(const std::vector<Protection>& protections, Protection protection) {
  return std::ranges::count(protections, protection) != 0;
}

}  // namespace

std::string describe(const Ending& ending) {
  struct Describer {
    std::string operator()(const Exited& e) const { return "exit code " + std::to_string(e.code); }
    std::string operator()(const Signaled& e) const {
      return "signal " + std::to_string(e.signal) + " (" + strsignal(e.signal) + ")";
    }
    std::string operator()(const TimedOut&) const { return "time limit"; }
    std::string operator()(const CpuExceeded&) const { return "CPU time limit"; }
    std::string operator()(const MemoryExceeded& e) const {
      return "memory limit (" + std::to_string(e.bytes >> 20) + " MiB in use)";
    }
    std::string operator()(const ThreadsExceeded& e) const {
      return "thread limit (" + std::to_string(e.num_threads) + " in use)";
    }
  };
  return std::visit(Describer{}, ending);
}

Status become_reaper() {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0) return ok();
  return system_error(ErrorCode::kUnavailable, "PR_SET_CHILD_SUBREAPER");
}

Result<Child> Child::start(const Profile& profile, std::span<const int> keep_fds,
                           const Body& body) {
  MC_CHECK(body != nullptr);
  if (auto status = become_reaper(); !status) return status.error();
  MC_TRY(Pipe pipe, make_pipe(), "start a sandboxed process");
  const pid_t launcher = fork();
  if (launcher < 0) return system_error(ErrorCode::kUnavailable, "fork");
  if (launcher == 0) run_launcher(profile, keep_fds, std::move(pipe.writer), body);
  pipe.writer.reset();
  const Report report = read_report(pipe.reader);
  ::kill(launcher, SIGKILL);  // The launcher has ended, unless it hangs.
  while (waitpid(launcher, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (report.init <= 0) return Error{ErrorCode::kUnavailable, report.failure};
  auto child = adopt(report.init, profile);
  if (child && !report.failure.empty()) return Error{ErrorCode::kUnavailable, report.failure};
  return child;
}

Result<Child> Child::adopt(pid_t init, const Profile& profile) {
  MC_CHECK(init > 0);  // Signals to 0 or -1 would reach other processes than the sandbox's.
  Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, init, 0)));
  if (!pidfd.is_open()) {
    return system_error(ErrorCode::kUnavailable, "pidfd_open " + std::to_string(init));
  }
  return Child(init, std::move(pidfd), profile);
}

Child::Child(pid_t init, Fd pidfd, const Profile& profile)
    : init_(init),
      pidfd_(std::move(pidfd)),
      limits_(profile.limits),
      may_fork_(profile.allow_fork),
      dies_as_tree_(!holds(profile.optional, Protection::kPidNamespace) &&
                    !holds(profile.off, Protection::kPidNamespace)),
      inherited_bytes_(profile.allow_exec ? 0 : inherited_bytes(init)) {}

Child& Child::operator=(Child&& other) noexcept {
  if (this == &other) return *this;
  kill_tree();
  init_ = other.init_;
  pidfd_ = std::move(other.pidfd_);
  limits_ = other.limits_;
  may_fork_ = other.may_fork_;
  tree_ = std::move(other.tree_);
  dies_as_tree_ = other.dies_as_tree_;
  inherited_bytes_ = other.inherited_bytes_;
  look_next_ = other.look_next_;
  ending_ = other.ending_;
  usage_ = other.usage_;
  return *this;
}

std::optional<Ending> Child::await(const Awaited& awaited) {
  MC_CHECK(awaited.ready == Ready::kToRead || awaited.fd >= 0);
  const short wanted = awaited.ready == Ready::kToRead ? POLLIN : POLLOUT;
  std::optional<Clock::time_point> hung_up;
  for (;;) {
    if (awaited.ready == Ready::kToRead && awaited.fd >= 0 && has_bytes(awaited.fd)) return {};
    if (auto ending = look(awaited.deadline)) return ending;
    if (hung_up && Clock::now() >= *hung_up + kHangupGrace) return {};

    pollfd fds[] = {{pidfd_.get(), POLLIN, 0}, {hung_up ? -1 : awaited.fd, wanted, 0}};
    ::poll(fds, 2, poll_timeout(std::min(awaited.deadline, look_next_)));
    if (fds[1].revents == 0) continue;
    // Readable without a byte means the end of file.
    if (wanted == POLLOUT && fds[1].revents == POLLOUT) return {};
    if (wanted == POLLIN && has_bytes(awaited.fd)) return {};
    hung_up = Clock::now();
  }
}

Ending Child::wait(Clock::time_point deadline) {
  auto ending = await({.deadline = deadline});
  MC_CHECK(ending.has_value());
  return *ending;
}

std::optional<Ending> Child::poll() {
  if (!pidfd_.is_open()) {
    MC_CHECK(ending_.has_value());
    return ending_;
  }
  pollfd ended{pidfd_.get(), POLLIN, 0};
  if (::poll(&ended, 1, 0) > 0) reap();
  return ending_;
}

std::optional<Ending> Child::look(Clock::time_point deadline) {
  if (auto ending = poll()) return ending;
  if (is_cancelled()) return end_with(Signaled{SIGKILL});
  if (Clock::now() >= deadline) return end_with(TimedOut{});
  if (auto ending = passed_limit()) return end_with(*ending);
  return std::nullopt;
}

// The limit that the tree exceeds now, if any.  A sandboxed process may exceed a limit between two
// checks unnoticed; only RLIMIT_DATA and the process limit are enforced by the kernel at all times.
std::optional<Ending> Child::passed_limit() {
  if (Clock::now() < look_next_) return std::nullopt;
  look_next_ = Clock::now() + kLookInterval;
  const TreeUse use = use_of_descendants(init_);
  const uint64_t bytes = use.memory_bytes - std::min(use.memory_bytes, inherited_bytes_);
  usage_.memory_bytes_peak = std::max(usage_.memory_bytes_peak, bytes);
  if (bytes > limits_.memory_bytes) return MemoryExceeded{bytes};
  if (use.num_threads > limits_.threads_max) return ThreadsExceeded{use.num_threads};
  return std::nullopt;
}

Ending Child::end_with(const Ending& ending) {
  MC_CHECK(pidfd_.is_open() && !ending_);
  ending_ = ending;
  kill_tree();
  return *ending_;
}

void Child::stop() { signal_tree(SIGSTOP); }
void Child::go_on() { signal_tree(SIGCONT); }

// Searching for processes takes a millisecond where one of them has many threads.
void Child::signal_tree(int signal) {
  if (poll()) return;
  MC_CHECK(pidfd_.is_open());  // No other process can have the pid.
  if (may_fork_ || tree_.empty()) {
    tree_ = signal_descendants(init_, signal);
  } else {
    for (const pid_t pid : tree_) kill(pid, signal);
  }
}

void Child::kill_tree() {
  if (!pidfd_.is_open()) return;
  std::vector<pid_t> orphans;
  if (!dies_as_tree_) orphans = signal_descendants(init_, SIGKILL);
  syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
  reap();
  for (const pid_t orphan : orphans) waitpid(orphan, nullptr, 0);
}

// Waits for init's end, which has happened or was requested.
void Child::reap() {
  MC_CHECK(pidfd_.is_open());
  siginfo_t info{};
  rusage use{};
  long result = 0;
  do {
    result = syscall(SYS_waitid, P_PIDFD, pidfd_.get(), &info, WEXITED, &use);
  } while (result != 0 && errno == EINTR);
  usage_.cpu = duration_of(use.ru_utime) + duration_of(use.ru_stime);
  if (!ending_) {
    ending_ = result == 0 ? ending_of(info, limits_, usage_.cpu) : Ending(Signaled{SIGKILL});
  }
  pidfd_.reset();
}

}  // namespace mc::sandbox
