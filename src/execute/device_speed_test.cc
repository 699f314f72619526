// SPDX-License-Identifier: Apache-2.0
#include "execute/device_speed.h"

#include <gtest/gtest.h>

namespace mc::execute {
namespace {

const DeviceSpeed kSpeed{3000, 50, 700};

TEST(FloorOf, IsBytesOverBandwidth) {
  const task::Floor floor = floor_of(kSpeed, {6e6, 1e6, false});
  EXPECT_EQ(floor.bound, "memory");
  EXPECT_DOUBLE_EQ(floor.time_us, 2);
}

TEST(FloorOf, OrOperationsOverThePeakOfTheDtype) {
  const task::Floor single = floor_of(kSpeed, {6e6, 7e9, false});
  EXPECT_EQ(single.bound, "compute");
  EXPECT_DOUBLE_EQ(single.time_us, 140);
  const task::Floor half = floor_of(kSpeed, {6e6, 7e9, true});
  EXPECT_DOUBLE_EQ(half.time_us, 10);
  EXPECT_EQ(half.peak_tflops, 700);
}

}  // namespace
}  // namespace mc::execute
