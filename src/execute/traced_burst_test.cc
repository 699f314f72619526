// SPDX-License-Identifier: Apache-2.0
#include "execute/traced_burst.h"

#include <gtest/gtest.h>

namespace mc::execute {
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

TEST(TracedCallUs, IsTheMedianOfBurstsWhateverTheirCalls) {
  EXPECT_EQ(traced_call_us(std::vector{burst(2, {10}), burst(100, {4000}), burst(1, {6})}), 6);
  EXPECT_EQ(traced_call_us(std::vector{burst(1, {5}), burst(1, {7})}), 6);
}

TEST(TracedCallUs, OfNothingIsNothing) {
  EXPECT_EQ(traced_call_us({}), 0);
  EXPECT_EQ(traced_call_us(std::vector{burst(3, {})}), 0);
}

}  // namespace
}  // namespace mc::execute
