// SPDX-License-Identifier: Apache-2.0
#include "timing/late_inputs.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mc::timing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Ge;
using ::testing::Lt;
using ::testing::SizeIs;

TEST(LateInputs, ArePickedFromTheLastThirdButNotTheLastCall) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (int calls = 1; calls <= 400; ++calls) {
    const std::vector<int64_t> picked = pick_late(calls, random);
    EXPECT_THAT(picked, SizeIs(num_late(calls)));
    EXPECT_THAT(std::set(picked.begin(), picked.end()), SizeIs(num_late(calls)));
    EXPECT_THAT(picked, Each(AllOf(Ge(2 * calls / 3 - 1), Lt(calls - 1))));
  }
  EXPECT_EQ(num_late(24), 0);
  EXPECT_EQ(num_late(25), 8);
}

TEST(LateInputs, DifferFromBatchToBatch) {
  std::mt19937_64 random(1);
  EXPECT_NE(pick_late(400, random), pick_late(400, random));
}

TEST(Arrival, IsToldByTheClock) {
  const Replacement prompt{.asked_us = 100, .replaced_us = 400, .done_us = 20'000};
  EXPECT_EQ(arrival_of(300, 400, prompt), Arrival::kLate);
  const Replacement slow{.asked_us = 13'000, .replaced_us = 15'000, .done_us = 20'000};
  EXPECT_EQ(arrival_of(150, 400, slow), Arrival::kEarly);
  EXPECT_EQ(arrival_of(270, 400, slow), Arrival::kTorn);
  EXPECT_EQ(arrival_of(330, 400, slow), Arrival::kTorn) << "within the margin";
  EXPECT_EQ(arrival_of(360, 400, slow), Arrival::kLate);
}

TEST(Arrival, IsNotToldOfAShortBatch) {
  EXPECT_EQ(arrival_of(300, 400, {.asked_us = 1, .replaced_us = 2, .done_us = 1000}),
            Arrival::kTorn);
}

TEST(IsAhead, WhereFourOfFiveIgnoreLateInputs) {
  EXPECT_TRUE(is_ahead({5, 4}));
  EXPECT_TRUE(is_ahead({8, 7}));
  EXPECT_FALSE(is_ahead({8, 6}));
  EXPECT_FALSE(is_ahead({4, 4})) << "too few";
  EXPECT_FALSE(is_ahead({}));
}

}  // namespace
}  // namespace mc::timing
