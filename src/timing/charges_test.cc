// SPDX-License-Identifier: Apache-2.0
#include "timing/charges.h"

#include <gtest/gtest.h>

namespace mc::timing {
namespace {

constexpr ChargeRules kRules{.gap_us = 1,
                             .gap_us_min = 0.85,
                             .gap_us_max = 1.25,
                             .host_us_free = 150,
                             .host_us_free_launch = 15,
                             .clock_slack_us = 40,
                             .clock_slack_share = 0.005};

// A clock that is 160 us from an honest process's events.
Charges charges() {
  Charges charges(kRules);
  charges.note_baseline({.events_us = 4000, .bracket_us = 4170, .calls = 400, .is_trusted = true});
  charges.note_baseline({.events_us = 4000, .bracket_us = 4160, .calls = 400, .is_trusted = true});
  return charges;
}

TEST(Charges, EventsCountWhereTheClockAgrees) {
  EXPECT_DOUBLE_EQ(charges().call_us({.events_us = 4000, .bracket_us = 4200, .calls = 400}, 1), 9);
}

TEST(Charges, TheClockCountsWhereTheEventsSayMuchLess) {
  const BurstReading lie{.events_us = 400, .bracket_us = 4160, .calls = 400};
  EXPECT_FALSE(charges().confirms(lie));
  EXPECT_DOUBLE_EQ(charges().call_us(lie, 1), 9);
}

// Outputs are copied 300 us after an honest process's end, give or take.
Charges charges_with_looks() {
  Charges rules = charges();
  BurstReading burst{.events_us = 4000, .bracket_us = 4160, .calls = 400, .is_trusted = true};
  for (const double look_us : {900, 300, 140, 310, 290}) {
    burst.looked_us = 4000 + look_us;
    rules.note_baseline(burst);
  }
  return rules;
}

TEST(Charges, LooksTellOfAnEndThatWasToldTooEarly) {
  const Charges rules = charges_with_looks();
  const BurstReading early{
      .events_us = 400, .bracket_us = 560, .looked_us = 4300, .queue_us = 1000, .calls = 400};
  EXPECT_TRUE(rules.confirms(early));
  EXPECT_FALSE(rules.look_confirms(early));
  EXPECT_DOUBLE_EQ(rules.look_excess_us(early), 3600);
  EXPECT_DOUBLE_EQ(rules.call_us(early, 0), 1);
  EXPECT_DOUBLE_EQ(rules.call_us(early, 0, Charges::Until::kCopied), 10);
}

TEST(Charges, ALookThatIsSoonerThanABaselinesGainsNothing) {
  const BurstReading soon{
      .events_us = 4000, .bracket_us = 4160, .looked_us = 4200, .queue_us = 1000, .calls = 400};
  EXPECT_DOUBLE_EQ(charges_with_looks().call_us(soon, 0, Charges::Until::kCopied), 10);
}

TEST(Charges, LooksHaveSomeSlackAndNoMore) {
  const Charges rules = charges_with_looks();
  BurstReading burst{
      .events_us = 400, .bracket_us = 560, .looked_us = 0, .queue_us = 1000, .calls = 400};
  burst.looked_us = 400 + 300 + kRules.look_slack_us + 0.005 * 400;
  EXPECT_TRUE(rules.look_confirms(burst));
  burst.looked_us += 1;
  EXPECT_FALSE(rules.look_confirms(burst));
}

TEST(Charges, AnOpenBurstHasToTellWhereOutputsLie) {
  const Charges rules = charges_with_looks();
  BurstReading burst{.events_us = 400, .bracket_us = 560, .looked_us = 0, .calls = 400};
  const double slack_us = kRules.look_slack_open_us + 400 * kRules.look_slack_open_call_us;
  burst.looked_us = 400 + 300 + slack_us + 0.005 * 400;
  EXPECT_TRUE(rules.look_confirms(burst));
  burst.looked_us += 1;
  EXPECT_FALSE(rules.look_confirms(burst));
}

TEST(Charges, LooksSayNothingWhereTheBaselineHasNone) {
  const BurstReading burst{.events_us = 400, .bracket_us = 560, .looked_us = 9000, .calls = 400};
  EXPECT_TRUE(charges().look_confirms(burst));
  EXPECT_DOUBLE_EQ(charges().call_us(burst, 0, Charges::Until::kCopied), 1);
}

// As little as the slack can be gained by a lie.
TEST(Charges, AllowsSomeSlackAndNoMore) {
  const double edge = 4160 + 40 + 0.005 * 4000;
  EXPECT_TRUE(charges().confirms({.events_us = 4000, .bracket_us = edge, .calls = 400}));
  EXPECT_FALSE(charges().confirms({.events_us = 4000, .bracket_us = edge + 1, .calls = 400}));
}

TEST(Charges, ABaselineIsBelieved) {
  const BurstReading late{.events_us = 4000, .bracket_us = 9000, .calls = 400, .is_trusted = true};
  EXPECT_TRUE(charges().confirms(late));
  EXPECT_DOUBLE_EQ(charges().call_us(late, 1), 9);
}

TEST(Charges, HostTimeIsFreeAsFarAsQueueingHidesIt) {
  BurstReading burst{.events_us = 400, .bracket_us = 560, .queue_us = 100 * 165, .calls = 100};
  EXPECT_EQ(charges().host_us(burst), 0);
  burst.queue_us = 100 * 166;
  EXPECT_DOUBLE_EQ(charges().host_us(burst), 166);
  EXPECT_DOUBLE_EQ(charges().call_us(burst, 1), 166);
  burst.launches = 2;
  EXPECT_EQ(charges().host_us(burst), 0);
}

TEST(Charges, HostTimeIsFreeWhereTheDeviceTakesLonger) {
  BurstReading burst{.events_us = 4000, .bracket_us = 4160, .queue_us = 3999, .calls = 1};
  EXPECT_EQ(charges().host_us(burst), 0);
  burst.queue_us = 4001;
  EXPECT_DOUBLE_EQ(charges().host_us(burst), 4001);
}

TEST(Charges, TakesOffAGapButNotMostOfACall) {
  EXPECT_DOUBLE_EQ(charges().call_us({.events_us = 110, .bracket_us = 270, .calls = 100}, 1), 0.22);
}

TEST(Charges, TakesOffTheGapOfTheProcess) {
  EXPECT_DOUBLE_EQ(charges().call_us({.events_us = 4000, .bracket_us = 4160, .calls = 400}, 1.2),
                   8.8);
}

constexpr LaunchGap kUsual{.us = 1.0, .launches = 1, .is_measured = true};

TEST(Gap, IsWhatKernelsLeaveOfACall) {
  EXPECT_DOUBLE_EQ(charges().gap({.call_us = 10.1, .kernel_us = 9, .launches = 1}, kUsual).us, 1.1);
  EXPECT_DOUBLE_EQ(charges().gap({.call_us = 11.2, .kernel_us = 9, .launches = 2}, kUsual).us, 1.1);
}

TEST(Gap, IsMeasuredWithinWhatIsBelieved) {
  const LaunchGap gap = charges().gap({.call_us = 11.2, .kernel_us = 9, .launches = 2}, kUsual);
  EXPECT_TRUE(gap.is_measured);
  EXPECT_EQ(gap.launches, 2);
}

TEST(Gap, BelievesNothingOutOfTheOrdinary) {
  const LaunchGap high = charges().gap({.call_us = 10, .kernel_us = 1, .launches = 1}, kUsual);
  EXPECT_DOUBLE_EQ(high.us, 1.25);
  EXPECT_FALSE(high.is_measured);
  const LaunchGap low = charges().gap({.call_us = 10, .kernel_us = 20, .launches = 1}, kUsual);
  EXPECT_DOUBLE_EQ(low.us, 0.85);
  EXPECT_FALSE(low.is_measured);
}

// Memory decides how much a streaming kernel leaves, and the baseline moves as much of it.
TEST(Gap, MayBeALittleAboveTheBaselines) {
  const LaunchGap streaming{.us = 1.5, .launches = 1, .is_measured = true};
  const LaunchGap gap = charges().gap({.call_us = 11.6, .kernel_us = 10, .launches = 1}, streaming);
  EXPECT_DOUBLE_EQ(gap.us, 1.6);
  EXPECT_TRUE(gap.is_measured);
  EXPECT_DOUBLE_EQ(charges().gap({.call_us = 10, .kernel_us = 1, .launches = 1}, streaming).us,
                   1.75);
}

TEST(Gap, IsBelievedOfABaselineWithinReason) {
  EXPECT_DOUBLE_EQ(charges().gap_of_baseline({.call_us = 11.5, .kernel_us = 10, .launches = 1}).us,
                   1.5);
  EXPECT_DOUBLE_EQ(charges().gap_of_baseline({.call_us = 20, .kernel_us = 10, .launches = 1}).us,
                   2);
}

TEST(Gap, IsTheUsualOneWhereKernelsOverlapOrNoneWasSeen) {
  const TracedCall overlapping{
      .call_us = 10.1, .kernel_us = 9, .launches = 1, .is_one_stream = false};
  const LaunchGap two = charges().gap(overlapping, kUsual);
  EXPECT_DOUBLE_EQ(two.us, 1);
  EXPECT_FALSE(two.is_measured);
  const LaunchGap none = charges().gap({.call_us = 10.1, .kernel_us = 0, .launches = 0}, kUsual);
  EXPECT_DOUBLE_EQ(none.us, 1);
  EXPECT_FALSE(none.is_measured);
}

TEST(ChooseCalls, TakesAsManyAsTheShortestLimitAllows) {
  const BurstLimits limits{.burst_us = 20000, .calls_max = 400, .launches_max = 800};
  EXPECT_EQ(choose_calls(limits, {.us = 1000, .launches = 1, .calls_fit = 1000}), 20);
  EXPECT_EQ(choose_calls(limits, {.us = 1, .launches = 1, .calls_fit = 1000}), 400);
  EXPECT_EQ(choose_calls(limits, {.us = 1, .launches = 80, .calls_fit = 1000}), 10);
  EXPECT_EQ(choose_calls(limits, {.us = 1, .launches = 1, .calls_fit = 10}), 10);
}

TEST(ChooseCalls, TakesOneWhereNothingFits) {
  EXPECT_EQ(choose_calls({}, {.us = 1e9, .launches = 1e6, .calls_fit = -1}), 1);
}

}  // namespace
}  // namespace mc::timing
