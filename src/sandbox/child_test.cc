// SPDX-License-Identifier: Apache-2.0
#include "sandbox/child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "core/cancel.h"
#include "sandbox/memory.h"
#include "sandbox/testing/test_child.h"
#include "sandbox/tree.h"

namespace mc::sandbox {
namespace {

using Clock = Child::Clock;
using std::chrono::milliseconds;

[[noreturn]] void hang() {
  for (;;) pause();
}

// Raises the processor's own exception, not a sanitizer's report of it.
[[noreturn, gnu::no_sanitize("address", "undefined")]] void divide_by_zero() {
  signal(SIGFPE, SIG_DFL);
  volatile int zero = 0;
  volatile int result = 100 / zero;
  _exit(result);
}

[[noreturn, gnu::no_sanitize("address", "undefined")]] void write_to_null() {
  signal(SIGSEGV, SIG_DFL);
  volatile int* volatile nowhere = nullptr;
  *nowhere = 1;
  _exit(0);
}

struct Crash {
  const char* name;
  int signal;
  void (*body)();
};

class ChildCrash : public testing::TestWithParam<Crash> {};

// The time is measured from just before the crash, so that a slow start does not count.
TEST_P(ChildCrash, IsReportedWithItsSignalWithin100Ms) {
  auto* const when = static_cast<std::atomic<int64_t>*>(mmap(nullptr, sizeof(std::atomic<int64_t>),
                                                             PROT_READ | PROT_WRITE,
                                                             MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  auto child = Child::start(Profile{}, {}, [&](const auto&) {
    *when = Clock::now().time_since_epoch().count();
    GetParam().body();
    return 0;
  });
  ASSERT_TRUE(child);
  const Ending ending = child->wait(test_deadline());
  const auto told = Clock::now();
  const auto* signaled = std::get_if<Signaled>(&ending);
  ASSERT_NE(signaled, nullptr) << describe(ending);
  EXPECT_EQ(signaled->signal, GetParam().signal);
  EXPECT_LT(told - Clock::time_point(Clock::duration(*when)), milliseconds(100));
  munmap(when, sizeof *when);
}

INSTANTIATE_TEST_SUITE_P(, ChildCrash,
                         testing::Values(Crash{"Segv", SIGSEGV, &write_to_null},
                                         Crash{"Abrt", SIGABRT, &abort},
                                         Crash{"Kill", SIGKILL, [] { raise(SIGKILL); }},
                                         Crash{"Fpe", SIGFPE, &divide_by_zero},
                                         Crash{"Term", SIGTERM, [] { raise(SIGTERM); }}),
                         [](const auto& crash) { return crash.param.name; });

TEST(Child, ReportsAnExitCode) {
  EXPECT_EQ(ending_inside(Profile{}, [] { return 42; }), "exit code 42");
}

TEST(Child, DoesNotTakeAnExitCodeForASignal) {
  EXPECT_EQ(ending_inside(Profile{}, [] { return 128 + SIGSEGV; }), "exit code 127");
}

TEST(Child, KillsAHangingProcessAtTheDeadline) {
  auto child = Child::start(Profile{}, {}, [](const auto&) -> int { hang(); });
  ASSERT_TRUE(child);
  const auto begin = Clock::now();
  const Ending ending = child->wait(begin + milliseconds(100));
  EXPECT_TRUE(std::holds_alternative<TimedOut>(ending)) << describe(ending);
  EXPECT_LT(Clock::now() - begin, milliseconds(1'100));
}

TEST(Child, KillsAHangingProcessThatIgnoresEverySignal) {
  auto child = Child::start(Profile{}, {}, [](const auto&) -> int {
    for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_IGN);
    hang();
  });
  ASSERT_TRUE(child);
  const Ending ending = child->wait(Clock::now() + milliseconds(50));
  EXPECT_TRUE(std::holds_alternative<TimedOut>(ending)) << describe(ending);
}

TEST(Child, EndsOnTooMuchSharedMemory) {
  Profile profile;
  profile.limits.memory_bytes = 64 << 20;
  auto child = Child::start(profile, {}, [](const auto&) -> int {
    constexpr size_t kSize = 256 << 20;
    void* data = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    std::memset(data, 1, kSize);
    hang();
  });
  ASSERT_TRUE(child);
  const Ending ending = child->wait(test_deadline());
  const auto* exceeded = std::get_if<MemoryExceeded>(&ending);
  ASSERT_NE(exceeded, nullptr) << describe(ending);
  EXPECT_GT(exceeded->bytes, uint64_t{64} << 20);
  EXPECT_GE(child->usage().memory_bytes_peak, exceeded->bytes);
}

TEST(Child, EndsOnTooManyThreads) {
  Profile profile;
  profile.limits.threads_max = 8;
  auto child = Child::start(profile, {}, [](const auto&) -> int {
    std::vector<std::thread> threads;
    for (int i = 0; i < 9; ++i) threads.emplace_back(&hang);
    hang();
  });
  ASSERT_TRUE(child);
  const Ending ending = child->wait(test_deadline());
  // For an ordinary user the kernel refuses the thread before it can be counted.
  const bool is_refused = geteuid() != 0 && describe(ending) == "signal 6 (Aborted)";
  EXPECT_TRUE(is_refused || std::holds_alternative<ThreadsExceeded>(ending)) << describe(ending);
}

TEST(Child, EndsOnTooMuchCpuTime) {
  Profile profile;
  profile.limits.cpu = std::chrono::seconds(1);
  auto child = Child::start(profile, {}, [](const auto&) -> int {
    signal(SIGXCPU, SIG_IGN);
    for (std::atomic<unsigned> i = 0;; ++i) {
    }
  });
  ASSERT_TRUE(child);
  const Ending ending = child->wait(test_deadline());
  EXPECT_TRUE(std::holds_alternative<CpuExceeded>(ending)) << describe(ending);
  EXPECT_GE(child->usage().cpu, std::chrono::seconds(1));
}

TEST(Child, DoesNotCountTheMemoryThatItWasForkedWith) {
  std::vector<char> ballast(256 << 20, 1);
  Profile profile;
  profile.limits.memory_bytes = 64 << 20;
  EXPECT_EQ(ending_inside(profile,
                          [&] {
                            usleep(60'000);  // Long enough for a check of its memory.
                            return ballast[0];
                          }),
            "exit code 1");
}

// Counters of two threads in each of two processes, which ignore all signals that they can.
struct Counters {
  std::array<std::atomic<uint64_t>, 4> values;

  static Counters* create() {
    return static_cast<Counters*>(
        mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  }

  [[noreturn]] void count() {
    for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_IGN);
    const size_t first = fork() == 0 ? 2 : 0;
    std::thread beside([&] {
      for (;;) ++values[first];
    });
    for (;;) ++values[first + 1];
  }

  std::array<uint64_t, 4> now() const { return {values[0], values[1], values[2], values[3]}; }

  // True if each counter eventually exceeds its earlier value.
  bool all_pass(const std::array<uint64_t, 4>& before) const {
    for (const auto deadline = test_deadline(); Clock::now() < deadline; usleep(1000)) {
      const auto after = now();
      bool passed = true;
      for (size_t i = 0; i < after.size(); ++i) passed = passed && after[i] > before[i];
      if (passed) return true;
    }
    return false;
  }
};

TEST(Child, StopsUntilItMayContinue) {
  for (const bool has_pid_namespace : {true, false}) {
    Counters& counters = *Counters::create();
    Profile profile;
    profile.allow_fork = true;
    if (!has_pid_namespace) {
      profile.off = {Protection::kPidNamespace, Protection::kPrivateProc};
      profile.optional = {Protection::kProcessLimit};
    }
    auto child = Child::start(profile, {}, [&](const auto&) -> int { counters.count(); });
    ASSERT_TRUE(child) << child.error().message;
    ASSERT_TRUE(counters.all_pass({}));
    for (int i = 0; i < 3; ++i) {
      child->stop();
      child->stop();
      EXPECT_TRUE(comes_to_rest(child->init()));
      const auto stopped = counters.now();
      child->go_on();
      EXPECT_TRUE(counters.all_pass(stopped));
    }
    child->stop();
    child->kill_tree();
    const auto killed = counters.now();
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    EXPECT_EQ(counters.now(), killed);
    munmap(&counters, sizeof counters);
  }
}

TEST(Child, StopsWithProcessesThatItForkedMeanwhile) {
  Counters& counters = *Counters::create();
  auto& [may_fork, count, unused, unused_too] = counters.values;
  Profile profile;
  profile.allow_fork = true;
  auto child = Child::start(profile, {}, [&](const auto&) -> int {
    while (may_fork == 0) usleep(1000);
    if (fork() == 0) {
      for (;;) ++count;
    }
    hang();
  });
  ASSERT_TRUE(child) << child.error().message;
  child->stop();
  child->go_on();
  may_fork = 1;
  for (const auto deadline = test_deadline(); count == 0 && Clock::now() < deadline;) usleep(1000);
  EXPECT_GT(count, 0u);
  child->stop();
  EXPECT_TRUE(comes_to_rest(child->init()));
  munmap(&counters, sizeof counters);
}

TEST(Child, EndsAtTheDeadlineWhileItIsStopped) {
  auto child = Child::start(Profile{}, {}, [](const auto&) -> int { hang(); });
  ASSERT_TRUE(child);
  child->stop();
  const Ending ending = child->wait(Clock::now() + milliseconds(50));
  EXPECT_TRUE(std::holds_alternative<TimedOut>(ending)) << describe(ending);
  child->stop();  // Stopping a child that has ended has no effect.
  child->go_on();
}

// The pipe's last writer is a daemon that left its parent and session, so the pipe ends when the
// daemon ends.
TEST(Child, KillsADaemonOfTheTree) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const Fd reader(ends[0]);
  Fd writer(ends[1]);
  Profile profile;
  profile.allow_fork = true;
  auto child = Child::start(profile, std::array{writer.get()}, [&](const auto&) -> int {
    if (fork() > 0) hang();
    setsid();
    if (fork() > 0) _exit(0);
    [[maybe_unused]] const ssize_t written = write(writer.get(), "x", 1);
    hang();
  });
  writer.reset();
  ASSERT_TRUE(child);
  char byte = 0;
  ASSERT_EQ(read(reader.get(), &byte, 1), 1);
  child->kill_tree();
  EXPECT_EQ(read(reader.get(), &byte, 1), 0);
}

TEST(Child, LeavesNoDaemonBehindWhenItEnds) {
  for (const bool has_pid_namespace : {true, false}) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const Fd reader(ends[0]);
    Fd writer(ends[1]);
    Profile profile;
    profile.allow_fork = true;
    if (!has_pid_namespace) {
      profile.off = {Protection::kPidNamespace, Protection::kPrivateProc};
      profile.optional = {Protection::kProcessLimit};
    }
    auto child = Child::start(profile, std::array{writer.get()}, [&](const auto&) -> int {
      if (fork() == 0) {
        setsid();
        hang();
      }
      return 0;
    });
    writer.reset();
    ASSERT_TRUE(child) << child.error().message;
    EXPECT_EQ(describe(child->wait(test_deadline())), "exit code 0");
    char byte = 0;
    EXPECT_EQ(read(reader.get(), &byte, 1), 0);
  }
}

TEST(Child, DiesWithTheSupervisor) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const Fd reader(ends[0]);
  Fd writer(ends[1]);
  const pid_t supervisor = fork();
  if (supervisor == 0) {
    auto child = Child::start(Profile{}, std::array{writer.get()}, [&](const auto&) -> int {
      [[maybe_unused]] const ssize_t written = write(writer.get(), "x", 1);
      hang();
    });
    hang();
  }
  writer.reset();
  char byte = 0;
  ASSERT_EQ(read(reader.get(), &byte, 1), 1);
  kill(supervisor, SIGKILL);
  EXPECT_EQ(read(reader.get(), &byte, 1), 0);
  while (waitpid(-1, nullptr, 0) > 0) {  // Its orphan is now a child of this process.
  }
}

struct Channel {
  Fd ours;
  Fd theirs;
};

Channel make_channel() {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

TEST(Child, ReportsReadableBytes) {
  Channel channel = make_channel();
  auto child = Child::start(Profile{}, std::array{channel.theirs.get()}, [&](const auto&) -> int {
    [[maybe_unused]] const ssize_t written = write(channel.theirs.get(), "x", 1);
    hang();
  });
  channel.theirs.reset();
  ASSERT_TRUE(child);
  EXPECT_FALSE(child->await({.fd = channel.ours.get(), .deadline = test_deadline()}).has_value());
}

TEST(Child, ReportsReadableBytesBeforeTheEnd) {
  Channel channel = make_channel();
  auto child = Child::start(Profile{}, std::array{channel.theirs.get()}, [&](const auto&) -> int {
    return write(channel.theirs.get(), "x", 1) == 1 ? 3 : 4;
  });
  channel.theirs.reset();
  ASSERT_TRUE(child);
  pollfd ended{child->end_fd(), POLLIN, 0};
  ASSERT_EQ(poll(&ended, 1, 10'000), 1);
  EXPECT_FALSE(child->await({.fd = channel.ours.get(), .deadline = test_deadline()}).has_value());
  char byte = 0;
  ASSERT_EQ(read(channel.ours.get(), &byte, 1), 1);
  const auto ending = child->await({.fd = channel.ours.get(), .deadline = test_deadline()});
  ASSERT_TRUE(ending.has_value());
  EXPECT_EQ(describe(*ending), "exit code 3");
}

TEST(Child, ReportsACrashRatherThanTheHangUp) {
  Channel channel = make_channel();
  auto child = Child::start(Profile{}, std::array{channel.theirs.get()},
                            [&](const auto&) -> int { abort(); });
  channel.theirs.reset();
  ASSERT_TRUE(child);
  const auto ending = child->await({.fd = channel.ours.get(), .deadline = test_deadline()});
  ASSERT_TRUE(ending.has_value());
  EXPECT_EQ(describe(*ending), "signal 6 (Aborted)");
}

TEST(Child, ReportsAHangUpThatNoEndFollows) {
  Channel channel = make_channel();
  auto child = Child::start(Profile{}, std::array{channel.theirs.get()}, [&](const auto&) -> int {
    close(channel.theirs.get());
    hang();
  });
  channel.theirs.reset();
  ASSERT_TRUE(child);
  EXPECT_FALSE(child->await({.fd = channel.ours.get(), .deadline = test_deadline()}).has_value());
}

TEST(Child, KillsAChildThatDoesNotReadItsInput) {
  Channel channel = make_channel();
  auto child = Child::start(Profile{}, std::array{channel.theirs.get()},
                            [&](const auto&) -> int { hang(); });
  channel.theirs.reset();
  ASSERT_TRUE(child);
  const std::vector<char> block(1 << 16);
  while (send(channel.ours.get(), block.data(), block.size(), MSG_DONTWAIT) > 0) {
  }
  const auto ending = child->await({.fd = channel.ours.get(),
                                    .ready = Child::Ready::kToWrite,
                                    .deadline = Clock::now() + milliseconds(50)});
  ASSERT_TRUE(ending.has_value());
  EXPECT_TRUE(std::holds_alternative<TimedOut>(*ending));
}

size_t num_open_files() {
  size_t num_files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++num_files;
  }
  return num_files;
}

TEST(Child, LeavesNoDescriptorAndNoProcessOver200Runs) {
  const size_t num_before = num_open_files();
  for (int i = 0; i < 200; ++i) {
    auto child = Child::start(Profile{}, {}, [i](const auto&) -> int {
      if (i % 4 == 0) abort();
      if (i % 4 == 1) hang();
      return i % 4;
    });
    ASSERT_TRUE(child) << child.error().message;
    if (i % 4 == 3) continue;  // The destructor ends it.
    const auto deadline = i % 4 == 1 ? Clock::now() : test_deadline();
    const Ending ending = child->wait(deadline);
    ASSERT_EQ(describe(ending), i % 4 == 0   ? "signal 6 (Aborted)"
                                : i % 4 == 1 ? "time limit"
                                             : "exit code 2");
  }
  EXPECT_EQ(num_open_files(), num_before);
  EXPECT_TRUE(descendants(getpid()).empty());
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(Child, StartsFromAProcessWithMoreOpenFilesThanItsLimit) {
  const Profile profile;
  std::vector<Fd> open_files;
  while (open_files.size() <= profile.limits.files_max) {
    open_files.emplace_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  // None of these is open inside, and the process's own limit counts from zero.
  EXPECT_TRUE(holds_inside(profile, [] {
    const size_t num_inside = num_open_files();
    return 0 < num_inside && num_inside < 10;
  }));
}

TEST(Child, StartsFromManyThreadsAtOnce) {
  if (kIsSanitized) GTEST_SKIP() << "g++ 12's sanitizers' allocator does not survive such forks";
  std::vector<std::thread> threads;
  std::atomic<int> num_good{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&num_good] {
      for (int j = 0; j < 25; ++j) {
        if (ending_inside(Profile{}, [j] { return j; }) == "exit code " + std::to_string(j)) {
          ++num_good;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_good, 100);
}

TEST(Child, CannotAdoptAMissingProcess) {
  const auto child = Child::adopt(1 << 22, Profile{});
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().code, ErrorCode::kUnavailable);
}

TEST(Child, EndsOnceTheWorkOfItsThreadIsCancelled) {
  auto child = Child::start(Profile{}, {}, [](const auto&) {
    hang();
    return 0;
  });
  ASSERT_TRUE(child);
  std::stop_source stop;
  const CancelScope scope(stop.get_token());
  std::jthread canceller([&] { stop.request_stop(); });
  const Ending ending = child->wait(test_deadline());
  ASSERT_TRUE(std::holds_alternative<Signaled>(ending)) << describe(ending);
  EXPECT_EQ(kill(child->init(), 0), -1);
}

}  // namespace
}  // namespace mc::sandbox
