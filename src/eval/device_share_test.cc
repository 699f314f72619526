// SPDX-License-Identifier: Apache-2.0
#include "eval/device_share.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/file.h"

namespace mc::eval {
namespace {

using Use = DeviceShare::Use;

void await_waiting(const DeviceShare& share, size_t num) {
  while (share.num_waiting() < num) std::this_thread::yield();
}

// How many threads of this process wait for a lock of a file.
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

TEST(DeviceShare, IsAloneOrTogetherNeverBoth) {
  DeviceShare share;
  std::atomic<int> together{0};
  std::atomic<int> alone{0};
  std::atomic<int> clashes{0};
  const auto work = [&](int seed) {
    for (int i = 0; i < 500; ++i) {
      const bool wants_alone = (seed + i) % 3 == 0;
      const auto turn = share.take(wants_alone ? Use::kExclusive : Use::kShared);
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

TEST(DeviceShare, LetsSeveralInTogether) {
  DeviceShare share;
  const auto first = share.take(Use::kShared);
  const auto second = share.take(Use::kShared);
  SUCCEED();  // Neither waited for the other.
}

TEST(DeviceShare, KnowsWhetherSomebodyWaitsToBeAlone) {
  DeviceShare share;
  EXPECT_FALSE(share.is_wanted());
  auto turn = std::make_optional(share.take(Use::kShared));
  EXPECT_FALSE(share.is_wanted());
  std::jthread alone([&] { share.take(Use::kExclusive); });
  while (!share.is_wanted()) std::this_thread::yield();
  turn.reset();
  alone.join();
  EXPECT_FALSE(share.is_wanted());
}

// One that wants to be alone is not passed by those that come later.
TEST(DeviceShare, ServesInTheOrderOfComing) {
  DeviceShare share;
  std::vector<int> order;
  std::jthread alone;
  std::jthread late;
  {
    const auto early = share.take(Use::kShared);
    alone = std::jthread([&] {
      const auto turn = share.take(Use::kExclusive);
      order.push_back(1);
    });
    await_waiting(share, 1);
    late = std::jthread([&] {
      const auto turn = share.take(Use::kShared);
      order.push_back(2);
    });
    await_waiting(share, 2);
    EXPECT_TRUE(order.empty());
  }
  alone.join();
  late.join();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

// The waiters while one has the device alone, in this order; who is let in, in which.
std::vector<Use> order_of(DeviceShare& share, const std::vector<Use>& coming) {
  std::vector<Use> order;
  std::mutex mutex;
  std::vector<std::jthread> threads;
  {
    const auto first = share.take(Use::kExclusive);
    for (const Use use : coming) {
      threads.emplace_back([&share, &order, &mutex, use] {
        const auto turn = share.take(use);
        const std::lock_guard lock(mutex);
        order.push_back(use);
      });
      await_waiting(share, threads.size());
    }
  }
  threads.clear();
  return order;
}

constexpr Use kExclusive = Use::kExclusive;
constexpr Use kShared = Use::kShared;

TEST(DeviceShare, LetsThoseThatWantToBeAloneFollowEachOther) {
  DeviceShare share;
  EXPECT_THAT(order_of(share, {kShared, kExclusive, kShared, kExclusive}),
              testing::ElementsAre(kExclusive, kExclusive, kShared, kShared));
}

// All who wait to share are let in then, wherever they stand.
TEST(DeviceShare, LetsThemFollowEachOtherForSomeTurnsOnly) {
  DeviceShare share;
  std::vector<Use> coming(DeviceShare::kExclusiveInARow + 3, kExclusive);
  coming.insert(coming.begin() + 1, kShared);
  coming.insert(coming.end() - 1, kShared);
  coming.push_back(kShared);
  std::vector<Use> expected(coming.size(), kExclusive);
  std::fill_n(expected.begin() + DeviceShare::kExclusiveInARow - 1, 3, kShared);  // One was in.
  EXPECT_EQ(order_of(share, coming), expected);
}

TEST(DeviceShare, LetsThemGoOnWhereNobodyElseWaits) {
  DeviceShare share;
  const std::vector<Use> coming(2 * DeviceShare::kExclusiveInARow, kExclusive);
  EXPECT_EQ(order_of(share, coming), coming);
}

// Two processes: each has a share of its own, and they have the lock in common.
class TwoProcesses : public testing::Test {
 protected:
  TwoProcesses() : directory_(TemporaryDirectory::create("mc-lock").value()) {}

  std::optional<DeviceLock> lock() const {
    auto opened = DeviceLock::open(directory_.path(), "GPU-1");
    EXPECT_TRUE(opened);
    return std::move(*opened);
  }

  TemporaryDirectory directory_;
  DeviceShare here_{lock()};
  DeviceShare there_{lock()};
};

TEST_F(TwoProcesses, AreAloneOrTogetherNeverBoth) {
  std::atomic<int> together{0};
  std::atomic<int> alone{0};
  std::atomic<int> clashes{0};
  std::atomic<int> most{0};
  const auto work = [&](int seed) {
    for (int i = 0; i < 300; ++i) {
      const bool wants_alone = (seed + i) % 3 == 0;
      const auto turn =
          (seed % 2 == 0 ? here_ : there_).take(wants_alone ? Use::kExclusive : Use::kShared);
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

TEST_F(TwoProcesses, LetOneInThatWaitedBeforeThoseThatComeLater) {
  std::atomic<bool> was_alone{false};
  std::optional<DeviceShare::Turn> early(here_.take(Use::kShared));
  std::jthread alone([&] {
    const auto turn = there_.take(Use::kExclusive);
    was_alone = true;
  });
  await_blocked(1);
  std::atomic<bool> passed{false};
  std::jthread late([&] {
    const auto turn = here_.take(Use::kShared);
    passed = !was_alone;
  });
  await_blocked(2);
  EXPECT_FALSE(was_alone);
  early.reset();
  late.join();
  EXPECT_FALSE(passed);
}

TEST_F(TwoProcesses, AreLetInWhenTheOtherIsKilled) {
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t other = ::fork();
  if (other == 0) {
    const auto turn = there_.take(Use::kExclusive);
    (void)!::write(ready[1], "x", 1);
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  std::atomic<bool> is_in{false};
  std::jthread waits([&] {
    const auto turn = here_.take(Use::kShared);
    is_in = true;
  });
  await_blocked(1);
  EXPECT_FALSE(is_in);
  ::kill(other, SIGKILL);
  waits.join();
  ::waitpid(other, nullptr, 0);
}

TEST(DeviceLock, SaysWhereItCannotBe) {
  const auto lock = DeviceLock::open("/nonexistent", "GPU-1");
  ASSERT_FALSE(lock);
  EXPECT_THAT(lock.error().message, testing::HasSubstr("/nonexistent/musacoder-GPU-1.entry"));
}

// The removal is that of programs that tidy up a directory for temporary files.
TEST_F(TwoProcesses, HaveTheLockAgainWhenItsFilesWereRemoved) {
  for (const char* end : {".entry", ".use"}) {
    ASSERT_TRUE(
        std::filesystem::remove(directory_.path() / ("musacoder-GPU-1" + std::string(end))));
  }
  std::optional<DeviceShare::Turn> alone(here_.take(Use::kExclusive));
  std::atomic<bool> is_in{false};
  std::jthread waits([&] {
    const auto turn = there_.take(Use::kShared);
    is_in = true;
  });
  await_blocked(1);
  EXPECT_FALSE(is_in);
  alone.reset();
  waits.join();
}

// Every user needs it, whatever the umask of the first one is.
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
