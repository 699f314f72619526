// SPDX-License-Identifier: Apache-2.0
#include "eval/memory_need.h"

#include <gtest/gtest.h>

#include "eval/schedule.h"

namespace mc::eval {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

TEST(MemoryNeed, LeavesAPartOfTheDeviceToIdleProcesses) {
  EXPECT_EQ(capacity_of(80 * kGiB), 70 * kGiB);
  EXPECT_EQ(capacity_of(0), Schedule::kAll) << "there is no device";
}

TEST(MemoryNeed, GrowsWithTheCall) {
  const int64_t capacity = capacity_of(80 * kGiB);
  EXPECT_LT(need_of_trials({}, 3), 2 * kGiB) << "contexts alone";
  EXPECT_LT(need_of_timing({}, capacity), 2 * kGiB);
  const worker::CallMemory relu{.inputs = 6 * kGiB, .outputs = 6 * kGiB};
  EXPECT_LT(2 * need_of_trials(relu, 3), capacity) << "two of KernelBench's 1/19 at once";
  EXPECT_LT(need_of_timing(relu, capacity), capacity);
  const worker::CallMemory layers{.inputs = kGiB / 16, .outputs = kGiB / 16, .state = 2 * kGiB};
  EXPECT_GT(need_of_trials(layers, 3), 3 * 3 * layers.state) << "judge, region, candidate";
  EXPECT_LT(need_of_opening({}, capacity), capacity / 4);
}

}  // namespace
}  // namespace mc::eval
