// SPDX-License-Identifier: Apache-2.0
#include "eval/device_memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

namespace mc::eval {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

TEST(DeviceMemory, GivesAsMuchAsThereIs) {
  DeviceMemory memory(80 * kGiB);
  EXPECT_EQ(memory.capacity(), 70 * kGiB);
  const auto one = memory.take(40 * kGiB);
  const auto other = memory.take(30 * kGiB);
}

TEST(DeviceMemory, GivesAllToOneThatWantsMoreThanThereIs) {
  DeviceMemory memory(80 * kGiB);
  {
    const auto all = memory.take(DeviceMemory::kAll);
  }
  const auto again = memory.take(70 * kGiB);
}

TEST(DeviceMemory, MakesNobodyWaitWithoutADevice) {
  DeviceMemory memory(0);
  const auto all = memory.take(DeviceMemory::kAll);
  const auto more = memory.take(DeviceMemory::kAll);
}

TEST(DeviceMemory, LetsNobodyPassOneThatNeedsMore) {
  DeviceMemory memory(8 * kGiB);
  std::optional<DeviceMemory::Hold> first(memory.take(4 * kGiB));
  std::atomic<int> order = 0;
  int large_came = 0;
  int small_came = 0;
  std::jthread large([&] {
    const auto hold = memory.take(7 * kGiB);
    large_came = ++order;
  });
  while (memory.num_waiting() < 1) std::this_thread::yield();
  std::jthread small([&] {
    const auto hold = memory.take(kGiB);
    small_came = ++order;
  });
  while (memory.num_waiting() < 2) std::this_thread::yield();
  first.reset();
  large.join();
  small.join();
  EXPECT_EQ(large_came, 1);
  EXPECT_EQ(small_came, 2);
}

// Never more than there is, whatever comes and goes.
TEST(DeviceMemory, HoldsItsBoundUnderManyThreads) {
  DeviceMemory memory(8 * kGiB);
  std::atomic<int64_t> held = 0;
  std::atomic<bool> exceeded = false;
  {
    std::vector<std::jthread> threads;
    for (int64_t number = 1; number <= 6; ++number) {
      threads.emplace_back([&, number] {
        for (int round = 0; round < 300; ++round) {
          const int64_t bytes = number * kGiB;
          const auto hold = memory.take(bytes);
          if ((held += bytes) > memory.capacity()) exceeded = true;
          held -= bytes;
        }
      });
    }
  }
  EXPECT_FALSE(exceeded);
  EXPECT_EQ(held, 0);
}

TEST(DeviceMemory, KnowsWhatACallNeeds) {
  EXPECT_LT(need_of_call(0), 2 * kGiB) << "contexts alone";
  EXPECT_GT(need_of_call(1.0 * kGiB), 12 * kGiB) << "KernelBench 1/7 had 11.3 GiB in the judge";
  const DeviceMemory device(80 * kGiB);
  EXPECT_LT(need_of_opening(device), device.capacity() / 4);
}

}  // namespace
}  // namespace mc::eval
