// SPDX-License-Identifier: Apache-2.0
#include "timing/traced_batch.h"

#include <gtest/gtest.h>

namespace mc::timing {
namespace {

// One kernel for each time.
TracedBurst burst(int calls, const std::vector<double>& times_us) {
  TracedBurst made;
  made.calls = calls;
  for (const double time_us : times_us) {
    made.kernels.emplace_back();
    made.kernels.back().time_us = time_us;
  }
  return made;
}

TEST(TracedCallUs, IsOfAllKernelsOfACall) {
  EXPECT_EQ(traced_call_us(std::vector{burst(4, {30, 10})}), 10);
}

TEST(TracedCallUs, IsTheLeastOfBurstsWhateverTheirCalls) {
  EXPECT_EQ(traced_call_us(std::vector{burst(2, {10}), burst(100, {4000}), burst(1, {6})}), 5);
  EXPECT_EQ(traced_call_us(std::vector{burst(1, {7}), burst(1, {5})}), 5);
}

TEST(TracedCallUs, OfNothingIsNothing) {
  EXPECT_EQ(traced_call_us({}), 0);
  EXPECT_EQ(traced_call_us(std::vector{burst(3, {})}), 0);
}

TEST(BusyCallUs, IsOfACallInTheBurstWithTheLeast) {
  std::vector<TracedBurst> bursts(2, burst(4, {30, 30}));
  bursts[0].busy_us = 44;
  bursts[1].busy_us = 40;
  EXPECT_EQ(busy_call_us(bursts), 10);
  EXPECT_EQ(busy_call_us({}), 0);
}

}  // namespace
}  // namespace mc::timing
