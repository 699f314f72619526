// SPDX-License-Identifier: Apache-2.0
#include "eval/device_share.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace mc::eval {
namespace {

using Use = DeviceShare::Use;

TEST(DeviceShare, IsAloneOrTogetherNeverBoth) {
  DeviceShare share;
  std::atomic<int> together{0};
  std::atomic<int> alone{0};
  std::atomic<int> clashes{0};
  const auto work = [&](int seed) {
    for (int i = 0; i < 500; ++i) {
      const bool wants_alone = (seed + i) % 3 == 0;
      const auto turn = share.take(wants_alone ? Use::kAlone : Use::kTogether);
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
  const auto first = share.take(Use::kTogether);
  const auto second = share.take(Use::kTogether);
  SUCCEED();  // Neither waited for the other.
}

TEST(DeviceShare, LetsNoMoreInTogetherThanItMay) {
  DeviceShare share(2);
  std::atomic<int> together{0};
  std::atomic<int> most{0};
  const auto work = [&] {
    for (int i = 0; i < 200; ++i) {
      const auto turn = share.take(i % 7 == 0 ? Use::kAlone : Use::kTogether);
      const int now = ++together;
      for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
      }
      std::this_thread::yield();
      --together;
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 0; i < 6; ++i) threads.emplace_back(work);
  threads.clear();
  EXPECT_EQ(most, 2);
}

// One that wants to be alone is not passed by those that come later.
TEST(DeviceShare, ServesInTheOrderOfComing) {
  DeviceShare share;
  std::vector<int> order;
  std::jthread alone;
  std::jthread late;
  {
    const auto early = share.take(Use::kTogether);
    std::atomic<bool> waits{false};
    alone = std::jthread([&] {
      waits = true;
      const auto turn = share.take(Use::kAlone);
      order.push_back(1);
    });
    while (!waits) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    late = std::jthread([&] {
      const auto turn = share.take(Use::kTogether);
      order.push_back(2);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_TRUE(order.empty());
  }
  alone.join();
  late.join();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

}  // namespace
}  // namespace mc::eval
