// SPDX-License-Identifier: Apache-2.0
#include "timing/batch_size.h"

#include <gtest/gtest.h>

namespace mc::timing {
namespace {

constexpr double kGiB = 1 << 30;

TEST(BurstRoom, FitsHundredsOfSmallCalls) {
  const BurstRoom room{{1e6, 1e6}};
  EXPECT_GT(room.calls_max(70 * kGiB), 400);
}

// KernelBench 1/47: 8 GiB of inputs on a device of 80.
TEST(BurstRoom, FitsOneCallOfALargeReduction) {
  const BurstRoom room{{8 * kGiB, 2e6}};
  EXPECT_GE(room.calls_max(76 * kGiB), 1);
  EXPECT_EQ(room.calls_max(30 * kGiB), 0);
}

TEST(BurstRoom, AnArenaHoldsTheOutputsOfAllCalls) {
  const BurstRoom room{{0, kGiB}};
  EXPECT_GE(room.arena_bytes(7), 7 * kGiB);
  EXPECT_NEAR(room.arena_bytes(8) - room.arena_bytes(7), 1.25 * kGiB, 1);
}

// What `calls_max` promises leaves room for all that it counts.
TEST(BurstRoom, NeverPromisesMoreThanThereIs) {
  for (const double inputs : {1e3, 1e6, 3e8, 2.1e9, 8.6e9}) {
    for (const double outputs : {4.0, 1e6, 5e8, 4.3e9}) {
      for (const double free : {1e9, 2e10, 8e10, 1.4e11}) {
        const BurstRoom room{{inputs, outputs}};
        const int calls = room.calls_max(free);
        if (calls == 0) continue;
        EXPECT_LT(3 * calls * inputs + 2 * room.arena_bytes(calls) + inputs + 3 * outputs, free)
            << inputs << " " << outputs << " " << free;
      }
    }
  }
}

TEST(BurstRoom, HasNoneInNoMemory) { EXPECT_EQ((BurstRoom{{4, 4}}.calls_max(0)), 0); }

}  // namespace
}  // namespace mc::timing
