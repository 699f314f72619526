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

// A thread that waits for memory, and when it got it.
class Waiting {
 public:
  Waiting(DeviceMemory& memory, int64_t bytes, std::atomic<int>& order)
      : thread_([this, &memory, bytes, &order] {
          const auto hold = memory.take(bytes);
          place = ++order;
        }) {}
  void join() { thread_.join(); }

  int place = 0;

 private:
  std::jthread thread_;
};

TEST(DeviceMemory, LetsTheOnesThatFitPassOneThatNeedsMore) {
  DeviceMemory memory(8 * kGiB);
  std::optional<DeviceMemory::Hold> first(memory.take(4 * kGiB));
  std::atomic<int> order = 0;
  Waiting large(memory, 7 * kGiB, order);
  while (memory.num_waiting() < 1) std::this_thread::yield();
  Waiting(memory, kGiB, order).join();
  EXPECT_EQ(order, 1);
  first.reset();
  large.join();
  EXPECT_EQ(large.place, 2);
}

TEST(DeviceMemory, LetsNoMoreThanSomePassOneThatWaits) {
  DeviceMemory memory(8 * kGiB);
  std::optional<DeviceMemory::Hold> first(memory.take(4 * kGiB));
  std::atomic<int> order = 0;
  Waiting large(memory, 7 * kGiB, order);
  while (memory.num_waiting() < 1) std::this_thread::yield();
  for (int i = 0; i < DeviceMemory::kPassedMax; ++i) Waiting(memory, kGiB, order).join();
  Waiting small(memory, kGiB, order);
  while (memory.num_waiting() < 2) std::this_thread::yield();
  first.reset();
  large.join();
  small.join();
  EXPECT_LT(large.place, small.place);
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
  const DeviceMemory device(80 * kGiB);
  EXPECT_LT(need_of_trials({}, 3), 2 * kGiB) << "contexts alone";
  EXPECT_LT(need_of_timing({}, device), 2 * kGiB);
  const worker::CallMemory relu{.inputs = 6 * kGiB, .outputs = 6 * kGiB};
  EXPECT_LT(2 * need_of_trials(relu, 3), device.capacity()) << "two of KernelBench's 1/19 at once";
  EXPECT_LT(need_of_timing(relu, device), device.capacity());
  const worker::CallMemory layers{.inputs = kGiB / 16, .outputs = kGiB / 16, .state = 2 * kGiB};
  EXPECT_GT(need_of_trials(layers, 3), 3 * 3 * layers.state) << "judge, region, candidate";
  EXPECT_LT(need_of_opening({}, device), device.capacity() / 4);
}

}  // namespace
}  // namespace mc::eval
