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
  EXPECT_EQ(occupancy({{128, 1, 1}, 16, 113 << 10}), 0.125);  // Two blocks take all 228 KiB.
}

TEST(Occupancy, NamesTheLimit) {
  const struct {
    int64_t threads, registers, shared_bytes, blocks;
    const char* limit;
  } kTable[] = {{256, 32, 0, 8, "warps"},
                {32, 16, 0, 32, "blocks"},
                {1024, 64, 0, 1, "registers"},
                {128, 32, 48 << 10, 4, "shared memory"},
                {128, 32, 113 << 10, 2, "shared memory"}};
  for (const auto& row : kTable) {
    const Occupancy found = occupancy_of(row.threads, row.registers, row.shared_bytes);
    EXPECT_EQ(found.blocks, row.blocks) << row.limit;
    EXPECT_EQ(found.limit, row.limit);
  }
}

TEST(Occupancy, IsZeroForABlockThatDoesNotFit) {
  EXPECT_EQ(occupancy({{2048, 1, 1}, 16, 0}), 0);
  EXPECT_EQ(occupancy({{1024, 1, 1}, 128, 0}), 0);
  EXPECT_EQ(occupancy({{0, 1, 1}, 16, 0}), 0);
}

}  // namespace
}  // namespace mc::timing
