// SPDX-License-Identifier: Apache-2.0
//
// What timing makes of arms that wait for the device in forward, and of those that end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "timing/test_timed.h"

namespace mc::timing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// ---- Arms that wait for the device --------------------------------------------------------------

TEST(TimingTrouble, TimesAnArmThatAlwaysBlocksOpen) {
  Rehearsal rehearsal = rehearse({.candidate = {.call_us = 200, .blocks = kAlways}});
  const task::Performance found = timed(rehearsal, steady()).performance;
  EXPECT_EQ(found.timing.mode, "open");
  EXPECT_EQ(found.timing.bursts, kPairs);
  EXPECT_EQ(found.timing.calls, kCalls);
  EXPECT_NEAR(found.time_us.median, 200, 4);
  EXPECT_EQ(num_gated(runs(rehearsal, "candidate")), 2) << "tries in warm-up";
  EXPECT_EQ(num_gated(runs(rehearsal, "baseline")), kBefore - 2 + kPairs + 1);
}

TEST(TimingTrouble, TriesTwiceWhetherAnArmCanBeGated) {
  Rehearsal rehearsal = rehearse({.candidate = {.blocks = only(kWarmUp)}});
  EXPECT_EQ(timed(rehearsal, steady()).performance.timing.mode, "gated");
}

TEST(TimingTrouble, MakesBurstsShorterThatDoNotFitIntoTheQueue) {
  Rehearsal rehearsal = rehearse({.candidate = {.calls_queued_max = 3}});
  const task::Timing found = timed(rehearsal, steady()).performance.timing;
  EXPECT_EQ(found.mode, "gated");
  EXPECT_EQ(found.calls, kCalls / 4);
  EXPECT_EQ(found.bursts, kPairs);
}

TEST(TimingTrouble, HasNoFewerCallsOpenAfterBlockingDownToOne) {
  Rehearsal rehearsal = rehearse({.candidate = {.blocks = since(kBefore)}});
  const task::Timing found = timed(rehearsal, steady()).performance.timing;
  EXPECT_EQ(found.mode, "open");
  EXPECT_EQ(found.calls, kCalls);
  EXPECT_EQ(found.bursts, kPairs);
}

// It waits for the device where it likes, to have short bursts.
TEST(TimingTrouble, TimesAnArmOpenWhoseQueueHoldsMuchLessThanOthers) {
  Rehearsal rehearsal = rehearse({.candidate = {.calls_queued_max = 3}});
  TimingOptions options = steady();
  options.burst.calls_max = 8 * kCalls;
  const task::Timing found = timed(rehearsal, options).performance.timing;
  EXPECT_EQ(found.mode, "open");
  EXPECT_EQ(found.calls, options.burst.calls_max);
}

// What blocked counts for nothing: its gate was opened before there were inputs.
TEST(TimingTrouble, GoesOnWithFewerCallsAfterABurstThatBlocked) {
  Rehearsal rehearsal =
      rehearse({.judge = {.wrong = only(kMiddle)}, .candidate = {.blocks = only(kMiddle)}});
  const task::Timing found = timed(rehearsal, steady()).performance.timing;
  EXPECT_EQ(found.mode, "gated");
  EXPECT_EQ(found.bursts, kPairs);
  EXPECT_EQ(found.calls, kCalls / 2);
  EXPECT_THAT(calls_of(runs(rehearsal, "candidate")), ElementsAre(2, 2, 2, 8, 8, 8, 8, 4, 4, 4, 4));
  EXPECT_THAT(calls_of(runs(rehearsal, "baseline")), ElementsAre(2, 2, 2, 8, 8, 8, 8, 8, 8, 8, 8));
  EXPECT_THAT(rehearsal.scenes("judge", "inputs"), SizeIs(4)) << "there is room for fewer";
}

TEST(TimingTrouble, BeginsAnewWithAnArmThatBlocksAgainAndAgain) {
  Rehearsal rehearsal = rehearse({.candidate = {.blocks = since(kMiddle)}});
  const task::Timing found = timed(rehearsal, steady()).performance.timing;
  EXPECT_EQ(found.mode, "open");
  EXPECT_EQ(found.bursts, kPairs);
  const std::vector<Scene> scenes = runs(rehearsal, "candidate");
  constexpr int kBlocked = 3;
  EXPECT_EQ(num_gated(scenes), kBefore - 2 + 2 + kBlocked) << "two that were good before";
  EXPECT_THAT(scenes, SizeIs(kBefore + 2 + kBlocked + kPairs + 1)) << "which do not count";
}

TEST(TimingTrouble, StaysGatedWhereOnlyATracedBurstBlocks) {
  Rehearsal rehearsal = rehearse({.candidate = {.blocks = only(kBefore + kPairs + 1)}});
  const task::Timing found = timed(rehearsal, steady()).performance.timing;
  EXPECT_EQ(found.mode, "gated");
  EXPECT_EQ(found.bursts, kPairs);
}

// ---- Arms that end ------------------------------------------------------------------------------

struct End {
  const char* at;
  uint32_t number;
};

class ArmThatDies : public ::testing::TestWithParam<End> {
 protected:
  static Fate fate() { return {Fate::Kind::kDies, GetParam().at, GetParam().number}; }
};

TEST_P(ArmThatDies, IsTheCandidatesCrash) {
  Rehearsal rehearsal = rehearse({.candidate = {.fate = fate()}});
  const task::Outcome outcome = decided(rehearsal);
  const auto* crashed = std::get_if<task::Crashed>(&outcome);
  ASSERT_NE(crashed, nullptr);
  EXPECT_EQ(crashed->stage, "forward");
  EXPECT_EQ(crashed->exit_code, Fate::kExitCode);
  EXPECT_THAT(rehearsal.scenes("judge", "close"), SizeIs(1));
}

TEST_P(ArmThatDies, IsAnErrorOfTheBaseline) {
  Rehearsal rehearsal = rehearse({.baseline = {.fate = fate()}});
  const auto played = play(rehearsal, steady());
  ASSERT_FALSE(played);
  EXPECT_EQ(played.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(played.error().message, HasSubstr("the baseline"));
  EXPECT_THAT(rehearsal.scenes("judge", "close"), SizeIs(1));
}

INSTANTIATE_TEST_SUITE_P(TimingTrouble, ArmThatDies,
                         ::testing::Values(End{"attach", 0}, End{"finish", 2},
                                           End{"queue", kMiddle}, End{"finish", kMiddle},
                                           End{"finish", kBefore + kPairs + 1}),
                         [](const auto& test) {
                           return "At_" + std::string(test.param.at) + "_" +
                                  std::to_string(test.param.number);
                         });

TEST(TimingTrouble, TellsTheExceptionOfACandidate) {
  const Fate fate{Fate::Kind::kRefuses, "queue", kMiddle};
  Rehearsal rehearsal = rehearse({.candidate = {.fate = fate}});
  const task::Outcome outcome = decided(rehearsal);
  const auto* crashed = std::get_if<task::Crashed>(&outcome);
  ASSERT_TRUE(crashed != nullptr && crashed->exception);
  EXPECT_EQ(crashed->exception->type, "ScriptError");
}

TEST(TimingTrouble, EndsACandidateThatHangs) {
  const Fate fate{Fate::Kind::kHangs, "finish", kMiddle};
  Rehearsal rehearsal = rehearse({.candidate = {.fate = fate}});
  StageLimits stage_limits = limits();
  stage_limits.forward_s = 1;
  EXPECT_TRUE(std::holds_alternative<task::TimedOut>(decided(rehearsal, stage_limits)));
}

TEST(TimingTrouble, HasNoCandidateAmongBaselines) {
  const Fate fate{Fate::Kind::kDies, "finish", kMiddle};
  Rehearsal rehearsal = rehearse({.candidate = {.fate = fate}});
  TimingOptions options = steady();
  options.is_trusted = true;
  EXPECT_FALSE(play(rehearsal, options));
}

}  // namespace
}  // namespace mc::timing
