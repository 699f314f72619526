// SPDX-License-Identifier: Apache-2.0
#include "eval/device_queue.h"

#include <optional>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mc::eval {
namespace {

using testing::ElementsAre;

// The devices of so many candidates that come and stay.
std::vector<size_t> places_of(DeviceQueue& queue,
                              std::vector<std::optional<DeviceQueue::Place>>& in, size_t num,
                              std::optional<size_t> warm = std::nullopt) {
  std::vector<size_t> indices;
  for (size_t i = 0; i < num; ++i) {
    in.emplace_back(queue.take([&](size_t index) { return index == warm; }));
    indices.push_back(in.back()->index());
  }
  return indices;
}

class DeviceQueueTest : public testing::Test {
 protected:
  DeviceQueue queue_{3};
  std::vector<std::optional<DeviceQueue::Place>> in_;
};

TEST_F(DeviceQueueTest, TakesTheDeviceWithTheFewestCandidates) {
  EXPECT_THAT(places_of(queue_, in_, 5), ElementsAre(0, 1, 2, 0, 1));
  in_[2].reset();
  EXPECT_THAT(places_of(queue_, in_, 2), ElementsAre(2, 2));
}

TEST_F(DeviceQueueTest, TakesAWarmDeviceAmongEquals) {
  EXPECT_THAT(places_of(queue_, in_, 1, 2), ElementsAre(2));
  EXPECT_THAT(places_of(queue_, in_, 2), ElementsAre(0, 1));
  EXPECT_THAT(places_of(queue_, in_, 1, 1), ElementsAre(1));
}

TEST_F(DeviceQueueTest, AWarmDeviceMayHaveOneCandidateMoreThanABusyOne) {
  EXPECT_THAT(places_of(queue_, in_, 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(places_of(queue_, in_, 2, 1), ElementsAre(1, 1));
  EXPECT_THAT(places_of(queue_, in_, 1, 1), ElementsAre(0));
}

TEST_F(DeviceQueueTest, AnIdleDeviceComesBeforeAWarmOne) {
  EXPECT_THAT(places_of(queue_, in_, 3, 1), ElementsAre(1, 0, 2));
}

TEST_F(DeviceQueueTest, SetsAsideAllButTheLastDevice) {
  EXPECT_TRUE(queue_.set_aside(0));
  EXPECT_FALSE(queue_.set_aside(0));
  EXPECT_TRUE(queue_.is_set_aside(0));
  EXPECT_THAT(places_of(queue_, in_, 3, 0), ElementsAre(1, 2, 1));
  EXPECT_TRUE(queue_.set_aside(2));
  EXPECT_FALSE(queue_.set_aside(1));
  EXPECT_EQ(queue_.num_left(), 1);
  EXPECT_THAT(places_of(queue_, in_, 2), ElementsAre(1, 1));
}

TEST_F(DeviceQueueTest, LosesNoPlaceUnderManyThreads) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < 9; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) queue_.take([](size_t) { return false; });
    });
  }
  threads.clear();
  EXPECT_THAT(places_of(queue_, in_, 3), ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace mc::eval
