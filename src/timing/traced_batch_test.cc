// SPDX-License-Identifier: Apache-2.0
#include "timing/traced_batch.h"

#include <gtest/gtest.h>

namespace mc::timing {
namespace {

TEST(BusyCallUs, IsTheLeastOfBatchesWhateverTheirCalls) {
  const std::vector<TracedBatch> batches{{{}, 2, 10}, {{}, 100, 400}, {{}, 1, 6}};
  EXPECT_EQ(busy_call_us(batches), 4);
}

TEST(BusyCallUs, OfNothingIsNothing) { EXPECT_EQ(busy_call_us({}), 0); }

TEST(BeginsEarly, WhereOneLaunchDid) {
  std::vector<TracedKernel> kernels(2);
  EXPECT_FALSE(begins_early(kernels));
  kernels[1].early = 1;
  EXPECT_TRUE(begins_early(kernels));
}

}  // namespace
}  // namespace mc::timing
