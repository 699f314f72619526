// SPDX-License-Identifier: Apache-2.0
//
// What a comparison makes of processes that do as they should, or nearly;
// comparison_trouble_test.cc has the others.
#include "timing/comparison_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "timing/test_timed.h"

namespace mc::timing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::SizeIs;

constexpr double kUs = 0.1;  // The simulation's clock is as good as that.

bool idle(const Behaviors& behaviors) {
  Simulation simulation(behaviors);
  return timed(simulation, steady()).is_idle;
}

// ---- Honest processes ---------------------------------------------------------------------------

TEST(ComparisonRun, ComparesTwoHonestProcesses) {
  Simulation simulation({.candidate = {.call_us = 4000}, .baseline = {.call_us = 16'000}});
  const task::Performance found = timed(simulation, steady()).performance;
  EXPECT_NEAR(found.time_us.median, 4000, kUs);
  EXPECT_NEAR(found.time_eager_us.median, 16'000, kUs);
  EXPECT_NEAR(found.speedup_eager.median, 4, 1e-3);
  EXPECT_LT(found.speedup_eager.low, found.speedup_eager.median);
  EXPECT_EQ(found.timing.mode, "enqueued");
  EXPECT_EQ(found.timing.calls, kCalls);
}

// Nothing that a candidate says of its events makes it faster.
TEST(ComparisonRun, BelievesTheClockAlone) {
  Simulation simulation(
      {.candidate = {.call_us = 2000, .share_claimed = 0.01}, .baseline = {.call_us = 2000}});
  EXPECT_NEAR(timed(simulation, steady()).performance.time_us.median, 2000, kUs);
}

TEST(ComparisonRun, PublishesInputsBetweenEnqueueingAndGate) {
  Simulation simulation{Behaviors{}};
  timed(simulation, steady());
  std::vector<std::string> order;
  for (const Record& record : simulation.records()) {
    for (const char* what : {"generate_inputs", "enqueue", "publish_inputs", "run"}) {
      if (record.what == what) order.push_back(record.what);
    }
  }
  EXPECT_EQ(std::ranges::count(simulation.records(), true, &Record::early), 0);
  ASSERT_EQ(order.size() % 4, 0u);
  for (size_t i = 0; i < order.size(); i += 4) {
    EXPECT_THAT(std::vector(order.begin() + i, order.begin() + i + 4),
                ElementsAre("generate_inputs", "enqueue", "publish_inputs", "run"));
  }
}

TEST(ComparisonRun, TakesNoMorePairsThanItNeeds) {
  const double batch_us = kCalls * 5000;
  struct Case {
    double timed_us;
    int pairs_max;
    int64_t expected;
  };
  for (const Case& c : {Case{0, 40, kPairs}, {6.5 * batch_us, 40, 7}, {kNoLimit, 7, 7}}) {
    Simulation simulation({.candidate = {.call_us = 5000}});
    RunOptions options = steady();
    options.timed_us = c.timed_us;
    options.pairs_max = c.pairs_max;
    const int64_t batches = timed(simulation, options).performance.timing.batches;
    EXPECT_EQ(batches, c.expected);
    EXPECT_THAT(runs(simulation, "candidate"), SizeIs(kBefore + batches));
    EXPECT_THAT(runs(simulation, "baseline"), SizeIs(kBefore + batches + 1));
  }
}

TEST(ComparisonRun, TakesThirteenPairsByDefaultAndFiveWhereItIsToBeQuick) {
  for (const bool is_quick : {false, true}) {
    Simulation simulation({.candidate = {.call_us = 600}, .baseline = {.call_us = 600}});
    RunOptions options;
    options.batch = steady().batch;
    if (is_quick) options.make_quick();
    const task::Timing found = timed(simulation, options).performance.timing;
    EXPECT_EQ(found.batches, is_quick ? 5 : 13);
    EXPECT_EQ(num_traced(runs(simulation, "candidate")), 1 + (is_quick ? 2 : 3))
        << "and in warm-up";
  }
}

// ---- How many calls a batch has -----------------------------------------------------------------

TEST(ComparisonRun, MakesBatchesOfTheLengthThatIsWanted) {
  Simulation simulation({.candidate = {.call_us = 20'000}, .baseline = {.call_us = 40'000}});
  RunOptions options = steady();
  options.batch.batch_us = 80'000;
  timed(simulation, options);
  EXPECT_EQ(runs(simulation, "candidate").back().calls, 4);
  EXPECT_EQ(runs(simulation, "baseline").back().calls, 2);
}

TEST(ComparisonRun, MeasuresBatchesOutOnce) {
  Simulation simulation({.candidate = {.call_us = 20'000}, .baseline = {.call_us = 20'000}});
  RunOptions options = steady();
  options.batch.batch_us = 80'000;
  const int64_t calls = timed(simulation, options).performance.timing.calls;
  const std::vector<int64_t> all = calls_of(runs(simulation, "candidate"));
  EXPECT_THAT(std::vector(all.begin() + kBefore, all.end()), Each(calls));
}

// A process that is slow until its batches are measured out has short ones, and so would gain more
// by what it says.
TEST(ComparisonRun, BelievesNobodyMuchFasterThanWhenItsBatchesWereMeasuredOut) {
  const NumberRange measured_out{1, kBefore};
  Simulation simulation(
      {.candidate = {.call_us = 100, .slow = measured_out, .slow_call_us = 40'000},
       .baseline = {.call_us = 10'000}});
  RunOptions options = steady();
  options.batch.batch_us = 80'000;
  const task::Performance found = timed(simulation, options).performance;
  EXPECT_LT(found.timing.calls, 8);
  EXPECT_NEAR(found.time_us.median, (100 + 40'000) / 2.0, kUs);
  EXPECT_THAT(found.timing.notes, ElementsAre(HasSubstr("measured out")));
}

TEST(ComparisonRun, TimesAHostThatIsBusyWithItsWaiting) {
  Simulation simulation({.candidate = {.enqueue_us = 20'000}});
  RunOptions options = steady();
  options.batch.host_us = 10'000;
  EXPECT_EQ(timed(simulation, options).performance.timing.mode, "host_synchronous");
}

// ---- Late inputs --------------------------------------------------------------------------------

RunOptions with_late_inputs() {
  RunOptions options = steady();
  options.batch.calls_max = 50;
  options.batches_late = 2;
  return options;
}

TEST(ComparisonRun, ReplacesInputsOfSomeCallsOfTheLastThirdOnceABatchHasBegun) {
  Simulation simulation({.candidate = {.call_us = 4000}});
  const task::Timing found = timed(simulation, with_late_inputs()).performance.timing;
  const std::vector<Record> replaced = simulation.records("judge", "replace_inputs");
  ASSERT_THAT(replaced, SizeIs(2));
  for (const Record& record : replaced) {
    EXPECT_THAT(record.picks, SizeIs(num_late(50)));
    EXPECT_THAT(record.picks, Each(AllOf(Ge(32), Le(48))));
    EXPECT_EQ(record.process, "candidate");
  }
  EXPECT_EQ(found.batches, kPairs) << "they do not count";
  EXPECT_EQ(found.calls_late, 2 * num_late(50));
}

TEST(ComparisonRun, RefusesWhoComputesCallsAheadOfTheirTurn) {
  Simulation simulation({.judge = {.ignored = true}, .candidate = {.call_us = 4000}});
  const auto played = play(simulation, with_late_inputs());
  ASSERT_TRUE(played);
  const auto* outcome = std::get_if<task::Outcome>(&*played);
  ASSERT_NE(outcome, nullptr);
  const auto* illegal = std::get_if<task::Illegal>(outcome);
  ASSERT_NE(illegal, nullptr);
  EXPECT_EQ(illegal->when, "timing");
  EXPECT_THAT(illegal->findings,
              ElementsAre(Field(&task::RuleFinding::rule, "timing.late_inputs")));
}

TEST(ComparisonRun, JudgesNoLateInputsThatCameTooLate) {
  Simulation simulation(
      {.judge = {.replace_us = 400'000, .ignored = true}, .candidate = {.call_us = 1000}});
  EXPECT_EQ(timed(simulation, with_late_inputs()).performance.timing.calls_late, 0);
}

TEST(ComparisonRun, HasNoLateInputsInShortBatchesNorAmongBaselines) {
  for (const bool is_trusted : {false, true}) {
    Simulation simulation{Behaviors{}};
    RunOptions options = with_late_inputs();
    options.is_trusted = is_trusted;
    if (!is_trusted) options.batch.calls_max = kCalls;
    timed(simulation, options);
    EXPECT_THAT(simulation.records("judge", "replace_inputs"), IsEmpty());
  }
}

TEST(ComparisonRun, TellsWhatACallTouchesAndHowMuchItComputes) {
  Simulation simulation({.judge = {.inputs_bytes = 3e6, .outputs_bytes = 5e6}});
  EXPECT_EQ(timed(simulation, steady()).work.bytes, 8e6);
}

TEST(ComparisonRun, TakesBothProcessesInEachPair) {
  Simulation simulation{Behaviors{}};
  timed(simulation, steady());
  std::vector<Record> records = simulation.records();
  std::erase_if(records, [](const Record& record) {
    return record.what != "run" || record.number <= kBefore || record.traced;
  });
  ASSERT_THAT(records, SizeIs(2 * kPairs));
  for (size_t i = 0; i < records.size(); i += 2) {
    EXPECT_NE(records[i].who, records[i + 1].who);
  }
}

TEST(ComparisonRun, StopsEarlyWhereOnePairTakesLongerThanAllShould) {
  Simulation simulation({.candidate = {.call_us = 20'000}});
  RunOptions options = steady();
  options.batch.calls_max = 1;
  options.budget_s = 0.005;
  options.pairs_min = 3;
  EXPECT_EQ(timed(simulation, options).performance.timing.batches, 3);
}

// Whose host stands still cannot keep the device busy while the baseline is timed.
TEST(ComparisonRun, LetsACandidateStandStillWhileTheBaselineRuns) {
  Simulation simulation{Behaviors{}};
  timed(simulation, steady());
  EXPECT_THAT(runs(simulation, "baseline"), Each(Field(&Record::beside, true)));
  EXPECT_THAT(runs(simulation, "candidate"), Each(Field(&Record::beside, false)));
}

// ---- Copies of outputs --------------------------------------------------------------------------

TEST(ComparisonRun, CopiesOutputsOfTheLastCallOfEachBatchAndOfOthers) {
  Simulation simulation{Behaviors{}};
  RunOptions options = steady();
  options.snapshots = 3;
  const int64_t verified = timed(simulation, options).performance.timing.calls_verified;
  for (const Record& copies : simulation.records("judge", "snapshot_outputs")) {
    ASSERT_THAT(copies.picks, SizeIs(3));
    EXPECT_THAT(copies.picks[0], testing::AnyOf(1, kCalls - 1));  // Two calls in warm-up.
    EXPECT_THAT(copies.picks, Each(Le(copies.picks[0])));
  }
  EXPECT_THAT(simulation.records("judge", "verify"), SizeIs(kBefore + kPairs));
  EXPECT_EQ(verified, 2 * kWarmUp + 3 * (2 + kPairs));
}

TEST(ComparisonRun, CopiesOneCallWhereOutputsAreLarge) {
  Simulation simulation({.judge = {.outputs_bytes = 1e8}});
  EXPECT_EQ(timed(simulation, steady()).performance.timing.calls_verified, kBefore + kPairs);
}

TEST(ComparisonRun, VerifiesNothingAmongBaselines) {
  Simulation simulation({.judge = {.wrong = kAlways}});
  RunOptions options = steady();
  options.is_trusted = true;
  EXPECT_EQ(timed(simulation, options).performance.timing.calls_verified, 0);
  EXPECT_THAT(simulation.records("judge", "verify"), IsEmpty());
}

class WrongFrom : public ::testing::TestWithParam<uint32_t> {};

TEST_P(WrongFrom, IsDecidedAtOnce) {
  Simulation simulation({.judge = {.wrong = since(GetParam())}});
  const task::Outcome outcome = decided(simulation);
  const auto* wrong = std::get_if<task::Wrong>(&outcome);
  ASSERT_NE(wrong, nullptr);
  ASSERT_THAT(wrong->trials, SizeIs(1));
  EXPECT_EQ(wrong->trials[0].shape, "native");
  EXPECT_THAT(wrong->trials[0].checks,
              ElementsAre(Field(&task::OutputCheck::detail, HasSubstr("as the behavior says"))));
  EXPECT_THAT(runs(simulation, "candidate"), SizeIs(GetParam()));
  EXPECT_THAT(simulation.records("judge", "close"), SizeIs(1));
}

INSTANTIATE_TEST_SUITE_P(ComparisonRun, WrongFrom,
                         ::testing::Values(1, 2, kWarmUp, kBefore, kMiddle, kBefore + kPairs));

TEST(ComparisonRun, DecidesInWarmUpWhatIsWrongThere) {
  Simulation simulation({.judge = {.wrong = since(kWarmUp)}});
  const StageLimits stage_limits = limits();
  const RunOptions options = steady();
  ComparisonRun run(simulation.judge(), stage_limits, options, nullptr);
  const auto decided = run.warm_up(simulation.candidate(), simulation.baseline());
  ASSERT_TRUE(decided && *decided);
  EXPECT_TRUE(std::holds_alternative<task::Wrong>(**decided));
}

// ---- Memory -------------------------------------------------------------------------------------

// The least that is free where so many calls fit, to a MiB.
double free_bytes_for(int calls) {
  const JudgeBehavior behavior;
  const BatchMemory memory{{behavior.inputs_bytes, behavior.outputs_bytes}};
  double free_bytes = 0;
  while (memory.calls_max(free_bytes) < calls) free_bytes += 1 << 20;
  return free_bytes;
}

TEST(ComparisonRun, HasOneCallABatchWhereOneFits) {
  const double free_bytes = free_bytes_for(1);
  Simulation simulation({.judge = {.free_bytes = {free_bytes}}});
  EXPECT_EQ(timed(simulation, steady()).performance.timing.calls, 1);
  EXPECT_THAT(calls_of(runs(simulation, "candidate")), Each(1));
  EXPECT_THAT(calls_of(runs(simulation, "baseline")), Each(1));
  for (const Record& arena : simulation.records("judge", "arena")) {
    EXPECT_LT(static_cast<double>(arena.nbytes), free_bytes / 2);
  }
}

TEST(ComparisonRun, HasOneCallABatchWhereNotEvenOneSeemsToFit) {
  Simulation simulation({.judge = {.free_bytes = {0}}});
  EXPECT_EQ(timed(simulation, steady()).performance.timing.calls, 1);
  EXPECT_THAT(calls_of(runs(simulation, "candidate")), Each(1));
}

TEST(ComparisonRun, TakesItsShareOfADeviceThatIsFull) {
  Simulation simulation(
      {.judge = {.free_bytes = {free_bytes_for(1)}, .total_bytes = 8 * free_bytes_for(4)}});
  EXPECT_THAT(timed(simulation, steady()).performance.timing.calls, AllOf(Ge(4), Le(5)));
}

TEST(ComparisonRun, AsksForRoomAgainOnceItIsAlone) {
  Simulation simulation({.judge = {.free_bytes = {free_bytes_for(1), free_bytes_for(4)}}});
  EXPECT_THAT(timed(simulation, steady()).performance.timing.calls, AllOf(Ge(4), Le(5)));
  std::vector<Record> records = runs(simulation, "candidate");
  records.resize(kWarmUp);
  EXPECT_THAT(calls_of(records), Each(1));
}

TEST(ComparisonRun, GivesNobodyLessThanItHasAlready) {
  Simulation simulation({.judge = {.free_bytes = {free_bytes_for(kCalls), free_bytes_for(1)}}});
  EXPECT_EQ(timed(simulation, steady()).performance.timing.calls, 2);
  EXPECT_THAT(simulation.records("judge", "inputs"), SizeIs(2));
}

// ---- What the judge has for it ------------------------------------------------------------------

TEST(ComparisonRun, GivesTheJudgesMemoryBackOnce) {
  Simulation simulation{Behaviors{}};
  {
    const StageLimits stage_limits = limits();
    ComparisonRun run(simulation.judge(), stage_limits, steady(), nullptr);
    ASSERT_TRUE(run.warm_up(simulation.candidate(), simulation.baseline()));
    ASSERT_TRUE(run.run());
    EXPECT_EQ(simulation.records().back().what, "close");
  }
  EXPECT_THAT(simulation.records("judge", "plan"), SizeIs(1));
  EXPECT_THAT(simulation.records("judge", "close"), SizeIs(1));
}

TEST(ComparisonRun, GivesTheJudgesMemoryBackWhereItOnlyWarmedUp) {
  Simulation simulation{Behaviors{}};
  {
    const StageLimits stage_limits = limits();
    ComparisonRun run(simulation.judge(), stage_limits, steady(), nullptr);
    ASSERT_TRUE(run.warm_up(simulation.candidate(), simulation.baseline()));
    EXPECT_THAT(simulation.records("judge", "close"), IsEmpty());
  }
  EXPECT_THAT(simulation.records("judge", "close"), SizeIs(1));
}

TEST(ComparisonRun, TakesNothingOfTheJudgeBeforeItWarmsUp) {
  Simulation simulation{Behaviors{}};
  {
    const StageLimits stage_limits = limits();
    const ComparisonRun run(simulation.judge(), stage_limits, steady(), nullptr);
  }
  EXPECT_THAT(simulation.records(), IsEmpty());
}

// ---- Traced batches -----------------------------------------------------------------------------

TEST(ComparisonRun, TracesBatchesAmongThePairs) {
  Simulation simulation({.candidate = {.launches = 4}});
  RunOptions options = steady();
  options.batches_traced = 2;
  const Timed found = timed(simulation, options);
  EXPECT_EQ(found.performance.timing.batches, kPairs);
  EXPECT_EQ(num_traced(runs(simulation, "candidate")), 1 + 2) << "one of them in warm-up";
  EXPECT_EQ(num_traced(runs(simulation, "baseline")), 1 + 1);
  ASSERT_THAT(found.traced, SizeIs(2));
  for (const TracedBatch& batch : found.traced) {
    EXPECT_EQ(batch.calls, kCalls);
    ASSERT_THAT(batch.kernels, SizeIs(1));
    EXPECT_EQ(batch.kernels[0].launches, 4 * kCalls);
    EXPECT_EQ(batch.kernels[0].owner, "owner.so");
  }
  EXPECT_NEAR(found.performance.time_kernels_us, 100, 1e-6);
  EXPECT_NEAR(found.performance.time_kernels_eager_us, 100, 1e-6);
}

TEST(ComparisonRun, ChargesWhatTracedKernelsTakeWhoIsFastOnlyWithoutATrace) {
  Simulation simulation({.candidate = {.call_us = 2000, .share_traced = 5}});
  RunOptions options = steady();
  options.batches_traced = 1;
  const Timed found = timed(simulation, options);
  EXPECT_NEAR(found.claimed_us, 2000, kUs);
  EXPECT_NEAR(found.performance.time_us.median, 10'000, 20);
  EXPECT_THAT(found.performance.timing.notes, ElementsAre(HasSubstr("where they were traced")));
}

TEST(ComparisonRun, TimesWorkThatDoesNotWaitForTheGateHostSynchronously) {
  Simulation simulation({.candidate = {.begins_early = true}});
  RunOptions options = steady();
  options.batches_traced = 2;
  const Timed found = timed(simulation, options);
  EXPECT_EQ(found.performance.timing.mode, "host_synchronous");
  EXPECT_EQ(found.performance.timing.batches, kPairs);
  EXPECT_THAT(found.performance.timing.notes, Contains(HasSubstr("without waiting")));
  const std::vector<Record> candidate = runs(simulation, "candidate");
  const auto counted = std::span(candidate).last(kPairs);
  EXPECT_TRUE(std::ranges::none_of(counted, &Record::enqueued)) << "all that count";
}

TEST(ComparisonRun, ABaselineMayBeginAsItLikes) {
  Simulation simulation({.baseline = {.begins_early = true}});
  timed(simulation, steady());
  for (const std::string who : {"candidate", "baseline"}) {
    const std::vector<Record> batches = runs(simulation, who);
    const auto counted = std::span(batches).last(kPairs);
    EXPECT_TRUE(std::ranges::all_of(counted, &Record::enqueued)) << who;
  }
}

// ---- Launches -----------------------------------------------------------------------------------

TEST(ComparisonRun, NotesACallThatLaunchesNothing) {
  EXPECT_FALSE(idle({}));
  EXPECT_TRUE(idle({.candidate = {.idle = only(kMiddle)}}));
}

// As where a reference returns what it was given.
TEST(ComparisonRun, NotesItNotWhereTheBaselineLaunchesNothingEither) {
  EXPECT_FALSE(idle({.candidate = {.idle = kAlways}, .baseline = {.idle = kAlways}}));
}

}  // namespace
}  // namespace mc::timing
