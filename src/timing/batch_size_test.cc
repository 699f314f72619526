// SPDX-License-Identifier: Apache-2.0
#include "timing/batch_size.h"

#include <gtest/gtest.h>

namespace mc::timing {
namespace {

constexpr double kGiB = 1 << 30;
constexpr int kMany = 1 << 20;

TEST(ChooseCalls, FillsABatchButNotTheQueueNorTheMemory) {
  EXPECT_EQ(choose_calls({}, {.us = 100}, kMany), 200);
  EXPECT_EQ(choose_calls({}, {.us = 1}, kMany), BatchLimits{}.calls_max);
  EXPECT_EQ(choose_calls({}, {.us = 0}, kMany), BatchLimits{}.calls_max);
  EXPECT_EQ(choose_calls({}, {.us = 100, .launches = 10}, kMany), 80);
  EXPECT_EQ(choose_calls({}, {.us = 100}, 7), 7);
  EXPECT_EQ(choose_calls({}, {.us = 1e6, .launches = 5000}, 0), 1);
}

// Who is slow as batches are measured out must not have short ones by it.
TEST(ChooseCalls, BesideABaselineAreAsManyAsItsOrMoreUnlessTheyTakeTooLong) {
  const CallCost baseline{.us = 100};
  EXPECT_EQ(choose_calls_beside({}, {.us = 50}, baseline, kMany), 400);
  EXPECT_EQ(choose_calls_beside({}, {.us = 100}, baseline, kMany), 200);
  EXPECT_EQ(choose_calls_beside({}, {.us = 199}, baseline, kMany), 200);
  EXPECT_EQ(choose_calls_beside({}, {.us = 1000}, baseline, kMany), 40);
  EXPECT_EQ(choose_calls_beside({}, {.us = 1e9}, baseline, kMany), 1);
}

TEST(IsHostBound, WhereQueueingHidesItNot) {
  EXPECT_FALSE(is_host_bound({}, 160, {.us = 5, .launches = 1}));
  EXPECT_TRUE(is_host_bound({}, 170, {.us = 5, .launches = 1}));
  EXPECT_FALSE(is_host_bound({}, 1000, {.us = 5, .launches = 60}));
  EXPECT_FALSE(is_host_bound({}, 2000, {.us = 3000, .launches = 1})) << "the device takes longer";
}

TEST(BatchMemory, FitsHundredsOfSmallCalls) {
  const BatchMemory memory{{1e6, 1e6}};
  EXPECT_GT(memory.calls_max(70 * kGiB), 400);
}

// KernelBench 1/47: 8 GiB of inputs on a device of 80.
TEST(BatchMemory, FitsOneCallOfALargeReduction) {
  const BatchMemory memory{{8 * kGiB, 2e6}};
  EXPECT_GE(memory.calls_max(76 * kGiB), 1);
  EXPECT_EQ(memory.calls_max(30 * kGiB), 0);
}

TEST(BatchMemory, AnArenaHoldsTheOutputsOfAllCalls) {
  const BatchMemory memory{{0, kGiB}};
  EXPECT_GE(memory.arena_bytes(7), 7 * kGiB);
  EXPECT_NEAR(memory.arena_bytes(8) - memory.arena_bytes(7), 1.25 * kGiB, 1);
}

// What `calls_max` promises leaves room for all that it counts.
TEST(BatchMemory, NeverPromisesMoreThanThereIs) {
  for (const double inputs : {1e3, 1e6, 3e8, 2.1e9, 8.6e9}) {
    for (const double outputs : {4.0, 1e6, 5e8, 4.3e9}) {
      for (const double free : {1e9, 2e10, 8e10, 1.4e11}) {
        const BatchMemory memory{{inputs, outputs}};
        const int calls = memory.calls_max(free);
        if (calls == 0) continue;
        EXPECT_LT(10.0 / 3 * calls * inputs + 2 * memory.arena_bytes(calls) + inputs + 3 * outputs,
                  free)
            << inputs << " " << outputs << " " << free;
      }
    }
  }
}

TEST(BatchMemory, HasNoneInNoMemory) { EXPECT_EQ((BatchMemory{{4, 4}}.calls_max(0)), 0); }

}  // namespace
}  // namespace mc::timing
