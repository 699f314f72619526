// SPDX-License-Identifier: Apache-2.0
#include "timing/occupancy.h"

#include <gtest/gtest.h>

namespace mc::timing {
namespace {

// Values of NVIDIA's occupancy calculator for compute capability 9.0.
TEST(Occupancy, IsWhatTheScarcestResourceAllows) {
  EXPECT_EQ(occupancy({{256, 1, 1}, 32, 0}), 1.0);
  EXPECT_EQ(occupancy({{256, 1, 1}, 64, 0}), 0.5);            // Registers.
  EXPECT_EQ(occupancy({{32, 1, 1}, 16, 0}), 0.5);             // Blocks.
  EXPECT_EQ(occupancy({{128, 1, 1}, 16, 100 << 10}), 0.125);  // Shared memory: two blocks.
  EXPECT_EQ(occupancy({{1024, 1, 1}, 64, 0}), 0.5);
}

TEST(Occupancy, IsZeroForABlockThatDoesNotFit) {
  EXPECT_EQ(occupancy({{2048, 1, 1}, 16, 0}), 0);
  EXPECT_EQ(occupancy({{1024, 1, 1}, 128, 0}), 0);
  EXPECT_EQ(occupancy({{0, 1, 1}, 16, 0}), 0);
}

}  // namespace
}  // namespace mc::timing
