// SPDX-License-Identifier: Apache-2.0
//
// What a comparison makes of processes that wait for the device in forward, and of those that end.
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

// ---- Processes that wait for the device
// --------------------------------------------------------------

TEST(ComparisonTrouble, TimesAProcessThatAlwaysBlocksHostSynchronously) {
  Simulation simulation({.candidate = {.call_us = 2000, .blocks = kAlways}});
  const task::Performance found = timed(simulation, steady()).performance;
  EXPECT_EQ(found.timing.mode, "host_synchronous");
  EXPECT_EQ(found.timing.batches, kPairs);
  EXPECT_EQ(found.timing.calls, kCalls);
  EXPECT_NEAR(found.time_us.median, 2000, 0.1);
  EXPECT_EQ(num_enqueued(runs(simulation, "candidate")), 2) << "tries in warm-up";
  EXPECT_EQ(num_enqueued(runs(simulation, "baseline")), kBefore - 2 + kPairs + 1);
}

TEST(ComparisonTrouble, TriesTwiceWhetherAProcessCanBeEnqueued) {
  Simulation simulation({.candidate = {.blocks = only(kWarmUp)}});
  EXPECT_EQ(timed(simulation, steady()).performance.timing.mode, "enqueued");
}

TEST(ComparisonTrouble, MakesBatchesShorterThatDoNotFitIntoTheQueue) {
  Simulation simulation({.candidate = {.calls_queued_max = 3}});
  const task::Timing found = timed(simulation, steady()).performance.timing;
  EXPECT_EQ(found.mode, "enqueued");
  EXPECT_EQ(found.calls, kCalls / 4);
  EXPECT_EQ(found.batches, kPairs);
}

// It waits for the device where it likes.
TEST(ComparisonTrouble, HasNoFewerCallsHostSynchronouslyAfterShorterBatchesBlockedToo) {
  for (const ProcessBehavior& behavior :
       {ProcessBehavior{.blocks = since(kWarmUp + 1)}, ProcessBehavior{.calls_queued_max = 2}}) {
    Simulation simulation({.candidate = behavior});
    RunOptions options = steady();
    options.batch.calls_max = 2 * kCalls;
    const task::Timing found = timed(simulation, options).performance.timing;
    EXPECT_EQ(found.mode, "host_synchronous");
    EXPECT_EQ(found.calls, 2 * kCalls);
    EXPECT_EQ(found.batches, kPairs);
  }
}

// What blocked counts for nothing: its gate was opened before there were inputs.
TEST(ComparisonTrouble, BeginsAnewWithAProcessThatBlocksLater) {
  Simulation simulation(
      {.judge = {.wrong = only(kMiddle)}, .candidate = {.blocks = only(kMiddle)}});
  const task::Timing found = timed(simulation, steady()).performance.timing;
  EXPECT_EQ(found.mode, "host_synchronous");
  EXPECT_EQ(found.batches, kPairs);
  EXPECT_EQ(found.calls, kCalls);
  const std::vector<Record> records = runs(simulation, "candidate");
  EXPECT_THAT(records, SizeIs(kMiddle + kPairs));
  EXPECT_EQ(num_enqueued(records), kMiddle - 2);
}

// ---- Processes that end
// ------------------------------------------------------------------------------

struct End {
  const char* at;
  uint32_t number;
};

class ProcessThatDies : public ::testing::TestWithParam<End> {
 protected:
  static Ending ending() { return {Ending::Kind::kDies, GetParam().at, GetParam().number}; }
};

TEST_P(ProcessThatDies, IsTheCandidatesCrash) {
  Simulation simulation({.candidate = {.ending = ending()}});
  const task::Outcome outcome = decided(simulation);
  const auto* crashed = std::get_if<task::Crashed>(&outcome);
  ASSERT_NE(crashed, nullptr);
  EXPECT_EQ(crashed->stage, "forward");
  EXPECT_EQ(crashed->exit_code, Ending::kExitCode);
  EXPECT_THAT(simulation.records("judge", "close"), SizeIs(1));
}

TEST_P(ProcessThatDies, IsAnErrorOfTheBaseline) {
  Simulation simulation({.baseline = {.ending = ending()}});
  const auto played = play(simulation, steady());
  ASSERT_FALSE(played);
  EXPECT_EQ(played.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(played.error().message, HasSubstr("the baseline"));
  EXPECT_THAT(simulation.records("judge", "close"), SizeIs(1));
}

INSTANTIATE_TEST_SUITE_P(ComparisonTrouble, ProcessThatDies,
                         ::testing::Values(End{"attach", 0}, End{"finish", 2},
                                           End{"enqueue", kMiddle}, End{"finish", kMiddle},
                                           End{"finish", kBefore + kPairs}),
                         [](const auto& test) {
                           return "At_" + std::string(test.param.at) + "_" +
                                  std::to_string(test.param.number);
                         });

TEST(ComparisonTrouble, TellsTheExceptionOfACandidate) {
  const Ending ending{Ending::Kind::kRefuses, "enqueue", kMiddle};
  Simulation simulation({.candidate = {.ending = ending}});
  const task::Outcome outcome = decided(simulation);
  const auto* crashed = std::get_if<task::Crashed>(&outcome);
  ASSERT_TRUE(crashed != nullptr && crashed->exception);
  EXPECT_EQ(crashed->exception->type, "ScriptError");
}

TEST(ComparisonTrouble, EndsACandidateThatHangs) {
  const Ending ending{Ending::Kind::kHangs, "finish", kMiddle};
  Simulation simulation({.candidate = {.ending = ending}});
  StageLimits stage_limits = limits();
  stage_limits.forward_s = 1;
  EXPECT_TRUE(std::holds_alternative<task::TimedOut>(decided(simulation, stage_limits)));
}

TEST(ComparisonTrouble, HasNoCandidateAmongBaselines) {
  const Ending ending{Ending::Kind::kDies, "finish", kMiddle};
  Simulation simulation({.candidate = {.ending = ending}});
  RunOptions options = steady();
  options.is_trusted = true;
  EXPECT_FALSE(play(simulation, options));
}

}  // namespace
}  // namespace mc::timing
