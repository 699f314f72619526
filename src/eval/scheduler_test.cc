// SPDX-License-Identifier: Apache-2.0
#include "eval/scheduler.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/file.h"

namespace mc::eval {
namespace {

using Use = Schedule::Use;

// A device without other users.
class SchedulerTest : public testing::Test {
 protected:
  void await_waiting(size_t num) {
    while (scheduler_.with_schedule([](Schedule& now) { return now.num_waiting(0); }) < num) {
      std::this_thread::yield();
    }
  }

  Scheduler scheduler_{{80}};
  const DeviceSchedule device_{scheduler_, 0};
};

// The number of threads of this process that wait for a file lock.
int num_blocked() {
  int blocked = 0;
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    const std::string pid = " " + std::to_string(::getpid()) + " ";
    if (line.find("-> FLOCK") != std::string::npos && line.find(pid) != std::string::npos) {
      ++blocked;
    }
  }
  return blocked;
}

void await_blocked(int num) {
  while (num_blocked() < num) std::this_thread::yield();
}

TEST_F(SchedulerTest, HoldsTurnsAloneOrTogetherUnderManyThreads) {
  std::atomic<int> together{0};
  std::atomic<int> alone{0};
  std::atomic<int> clashes{0};
  const auto work = [&](int seed) {
    for (int i = 0; i < 500; ++i) {
      const bool wants_alone = (seed + i) % 3 == 0;
      const auto turn = device_.turn(wants_alone ? Use::kExclusive : Use::kShared);
      (wants_alone ? alone : together)++;
      if (alone > 1 || (alone == 1 && together > 0)) ++clashes;
      (wants_alone ? alone : together)--;
    }
  };
  std::vector<std::jthread> threads;
  for (int seed = 0; seed < 4; ++seed) threads.emplace_back(work, seed);
  threads.clear();
  EXPECT_EQ(clashes, 0);
}

TEST_F(SchedulerTest, HoldsNoMoreMemoryThanThereIsUnderManyThreads) {
  std::atomic<int64_t> held = 0;
  std::atomic<bool> exceeded = false;
  std::vector<std::jthread> threads;
  for (int64_t bytes = 10; bytes <= 60; bytes += 10) {
    threads.emplace_back([&, bytes] {
      for (int round = 0; round < 300; ++round) {
        const auto memory = device_.memory(bytes);
        if ((held += bytes) > device_.capacity()) exceeded = true;
        held -= bytes;
      }
    });
  }
  threads.clear();
  EXPECT_FALSE(exceeded);
  EXPECT_EQ(held, 0);
}

TEST_F(SchedulerTest, WakesAThreadThatWaits) {
  std::optional<Scheduler::Hold> first(device_.turn(Use::kShared));
  std::atomic<bool> is_in = false;
  std::jthread other([&] {
    const auto turn = device_.turn(Use::kExclusive);
    is_in = true;
  });
  await_waiting(1);
  EXPECT_FALSE(is_in);
  EXPECT_TRUE(device_.is_exclusive_wanted());
  first.reset();
  other.join();
  EXPECT_FALSE(device_.is_exclusive_wanted());
}

TEST_F(SchedulerTest, ReleasesAHoldThatWasMoved) {
  {
    Scheduler::Hold first = device_.memory(80);
    const Scheduler::Hold moved = std::move(first);
  }
  const auto again = device_.memory(80);
}

TEST(Scheduler, ReleasesEveryDeviceUnderManyThreads) {
  Scheduler scheduler({80, 80, 80});
  std::vector<std::jthread> threads;
  for (int i = 0; i < 9; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) scheduler.take({});
    });
  }
  threads.clear();
  const auto first = scheduler.take({});
  const auto second = scheduler.take({});
  const auto third = scheduler.take({});
  EXPECT_THAT((std::vector{first.device, second.device, third.device}),
              testing::ElementsAre(0, 1, 2));
}

// Two processes, each with a scheduler of its own, that share the lock.
class TwoProcesses : public testing::Test {
 protected:
  TwoProcesses() : directory_(TemporaryDirectory::create("mc-lock").value()) {}

  std::optional<DeviceLock> lock() const {
    auto opened = DeviceLock::open(directory_.path(), "GPU-1");
    EXPECT_TRUE(opened);
    return std::move(*opened);
  }

  TemporaryDirectory directory_;
  Scheduler scheduler_{{Schedule::kAll}, {lock()}};
  Scheduler other_scheduler_{{Schedule::kAll}, {lock()}};
  const DeviceSchedule here_{scheduler_, 0};
  const DeviceSchedule there_{other_scheduler_, 0};
};

TEST_F(TwoProcesses, HoldTheLockExclusivelyOrSharedNeverBoth) {
  std::atomic<int> together{0};
  std::atomic<int> alone{0};
  std::atomic<int> clashes{0};
  std::atomic<int> most{0};
  const auto work = [&](int seed) {
    for (int i = 0; i < 300; ++i) {
      const bool wants_alone = (seed + i) % 3 == 0;
      const auto turn =
          (seed % 2 == 0 ? here_ : there_).turn(wants_alone ? Use::kExclusive : Use::kShared);
      (wants_alone ? alone : together)++;
      if (alone > 1 || (alone == 1 && together > 0)) ++clashes;
      most = std::max(most.load(), together.load());
      std::this_thread::yield();
      (wants_alone ? alone : together)--;
    }
  };
  std::vector<std::jthread> threads;
  for (int seed = 0; seed < 6; ++seed) threads.emplace_back(work, seed);
  threads.clear();
  EXPECT_EQ(clashes, 0);
  EXPECT_GT(most, 1);
}

TEST_F(TwoProcesses, AreGrantedTheLockInTheOrderOfRequests) {
  std::atomic<bool> was_alone{false};
  std::optional<Scheduler::Hold> early(here_.turn(Use::kShared));
  std::jthread alone([&] {
    const auto turn = there_.turn(Use::kExclusive);
    was_alone = true;
  });
  await_blocked(1);
  std::atomic<bool> passed{false};
  std::jthread late([&] {
    const auto turn = here_.turn(Use::kShared);
    passed = !was_alone;
  });
  await_blocked(2);
  EXPECT_FALSE(was_alone);
  early.reset();
  late.join();
  EXPECT_FALSE(passed);
}

TEST_F(TwoProcesses, GetTheLockWhenTheOtherProcessIsKilled) {
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t other = ::fork();
  if (other == 0) {
    const auto turn = there_.turn(Use::kExclusive);
    (void)!::write(ready[1], "x", 1);
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  std::atomic<bool> is_in{false};
  std::jthread waits([&] {
    const auto turn = here_.turn(Use::kShared);
    is_in = true;
  });
  await_blocked(1);
  EXPECT_FALSE(is_in);
  ::kill(other, SIGKILL);
  waits.join();
  ::waitpid(other, nullptr, 0);
}

TEST(DeviceLock, ReportsTheDirectoryThatItCannotUse) {
  const auto lock = DeviceLock::open("/nonexistent", "GPU-1");
  ASSERT_FALSE(lock);
  EXPECT_THAT(lock.error().message, testing::HasSubstr("/nonexistent/musacoder-GPU-1.entry"));
}

// Programs that clean up a directory for temporary files remove the lock's files.
TEST_F(TwoProcesses, HaveTheLockAgainWhenItsFilesWereRemoved) {
  for (const char* end : {".entry", ".use"}) {
    ASSERT_TRUE(
        std::filesystem::remove(directory_.path() / ("musacoder-GPU-1" + std::string(end))));
  }
  std::optional<Scheduler::Hold> alone(here_.turn(Use::kExclusive));
  std::atomic<bool> is_in{false};
  std::jthread waits([&] {
    const auto turn = there_.turn(Use::kShared);
    is_in = true;
  });
  await_blocked(1);
  EXPECT_FALSE(is_in);
  alone.reset();
  waits.join();
}

// Every user needs access, whatever the umask of the first one is.
TEST(DeviceLock, MakesFilesForAll) {
  const auto directory = TemporaryDirectory::create("mc-lock").value();
  const mode_t before = ::umask(077);
  const auto lock = DeviceLock::open(directory.path(), "GPU-1");
  ::umask(before);
  ASSERT_TRUE(lock);
  const auto status = std::filesystem::status(directory.path() / "musacoder-GPU-1.use");
  EXPECT_EQ(status.permissions(), std::filesystem::perms(0666));
}

}  // namespace
}  // namespace mc::eval
