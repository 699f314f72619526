// SPDX-License-Identifier: Apache-2.0
//
// What timing makes of arms that do as they should, or nearly; timing_trouble_test.cc has the
// others.
#include "timing/comparison_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
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

bool idle(const Scripts& scripts) {
  Rehearsal rehearsal = rehearse(scripts);
  return timed(rehearsal, steady()).is_idle;
}

// ---- Honest arms --------------------------------------------------------------------------------

TEST(Timing, ComparesTwoHonestArms) {
  Rehearsal rehearsal = rehearse({.candidate = {.call_us = 200}, .baseline = {.call_us = 400}});
  TimingOptions options = steady();
  options.charge.clock_slack_us = 50'000;
  const task::Performance found = timed(rehearsal, options).performance;
  EXPECT_NEAR(found.time_us.median, 200, 4);
  EXPECT_NEAR(found.time_eager_us.median, 400, 8);
  EXPECT_NEAR(found.speedup_eager.median, 2, 0.04);
  EXPECT_LT(found.speedup_eager.low, found.speedup_eager.median);
  EXPECT_EQ(found.timing.mode, "gated");
  EXPECT_EQ(found.timing.calls, kCalls);
  EXPECT_THAT(found.timing.notes, IsEmpty());
}

TEST(Timing, TellsWhatACallTouchesAndHowMuchItComputes) {
  Rehearsal rehearsal = rehearse({.judge = {.inputs_bytes = 3e6, .outputs_bytes = 5e6}});
  EXPECT_EQ(timed(rehearsal, steady()).work.bytes, 8e6);
}

TEST(Timing, TakesBothArmsInEachPair) {
  Rehearsal rehearsal = rehearse({});
  timed(rehearsal, steady());
  std::vector<Scene> scenes = rehearsal.scenes();
  std::erase_if(scenes, [](const Scene& scene) {
    return scene.what != "run" || scene.number <= kBefore || scene.traced;
  });
  ASSERT_THAT(scenes, SizeIs(2 * kPairs));
  for (size_t i = 0; i < scenes.size(); i += 2) {
    EXPECT_NE(scenes[i].who, scenes[i + 1].who);
    EXPECT_EQ(scenes[i].number, scenes[i + 1].number);
  }
}

// A burst is drawn, queued, shown its inputs, and let run.
TEST(Timing, RevealsInputsBetweenQueueAndGate) {
  Rehearsal rehearsal = rehearse({});
  timed(rehearsal, steady());
  std::vector<std::string> order;
  for (const Scene& scene : rehearsal.scenes()) {
    for (const char* what : {"draw", "queue", "reveal", "run"}) {
      if (scene.what == what) order.push_back(scene.what);
    }
  }
  EXPECT_EQ(std::ranges::count(rehearsal.scenes(), true, &Scene::early), 0);
  ASSERT_EQ(order.size() % 4, 0u);
  for (size_t i = 0; i < order.size(); i += 4) {
    EXPECT_THAT(std::vector(order.begin() + i, order.begin() + i + 4),
                ElementsAre("draw", "queue", "reveal", "run"));
  }
}

TEST(Timing, TakesNoMorePairsThanItNeeds) {
  const double burst_us = kCalls * ArmScript{}.call_us;
  struct Case {
    double timed_us;
    int pairs_max;
    int64_t expected;
  };
  for (const Case& c : {Case{0, 40, kPairs}, {9 * burst_us, 40, 9}, {kNoLimit, 7, 7}}) {
    Rehearsal rehearsal = rehearse({});
    TimingOptions options = steady();
    options.timed_us = c.timed_us;
    options.spread = {0, 0, 0};  // Nothing is precise enough.
    options.pairs_max = c.pairs_max;
    const task::Timing found = timed(rehearsal, options).performance.timing;
    EXPECT_EQ(found.bursts, c.expected);
    EXPECT_THAT(runs(rehearsal, "candidate"), SizeIs(kBefore + c.expected + 1));
    EXPECT_THAT(runs(rehearsal, "baseline"), SizeIs(kBefore + c.expected + 1));
  }
}

TEST(Timing, TakesThirteenPairsAndFiftyMillisecondsByDefault) {
  Rehearsal rehearsal = rehearse({.candidate = {.call_us = 500}, .baseline = {.call_us = 500}});
  TimingOptions options;
  options.burst = steady().burst;
  options.charge = steady().charge;
  const task::Timing found = timed(rehearsal, options).performance.timing;
  EXPECT_EQ(found.bursts, 13);
  EXPECT_EQ(found.calls, kCalls);
}

TEST(Timing, TakesFivePairsOfSuchBurstsWhereItIsToBeQuick) {
  Rehearsal rehearsal = rehearse({.candidate = {.call_us = 500}, .baseline = {.call_us = 500}});
  TimingOptions options;
  options.burst = steady().burst;
  options.charge = steady().charge;
  options.make_quick();
  const task::Timing found = timed(rehearsal, options).performance.timing;
  EXPECT_EQ(found.bursts, 5);
  EXPECT_EQ(found.calls, kCalls);
  EXPECT_EQ(num_traced(runs(rehearsal, "candidate")), 1 + 1 + 1)
      << "in warm-up, among the pairs, at the end";
}

TEST(Timing, TakesNoMorePairsThanTellMore) {
  Rehearsal rehearsal = rehearse({});
  TimingOptions options = steady();
  options.timed_us = kNoLimit;
  EXPECT_EQ(timed(rehearsal, options).performance.timing.bursts, kPairs);
}

TEST(Timing, StopsEarlyWhereOnePairTakesLongerThanAllShould) {
  Rehearsal rehearsal = rehearse({.candidate = {.call_us = 20'000}});
  TimingOptions options = steady();
  options.burst.calls_max = 1;
  options.budget_s = 0.005;
  options.pairs_min = 7;
  options.pairs = 13;
  EXPECT_EQ(timed(rehearsal, options).performance.timing.bursts, 3);
}

TEST(Timing, MakesBurstsNoLongerThanWanted) {
  Rehearsal rehearsal = rehearse({.candidate = {.call_us = 2000}, .baseline = {.call_us = 4000}});
  TimingOptions options = steady();
  options.burst.burst_us = 8000;
  timed(rehearsal, options);
  EXPECT_THAT(calls_of(runs(rehearsal, "candidate")), Each(Le(4)));
  EXPECT_THAT(calls_of(runs(rehearsal, "baseline")), Each(Le(2)));
}

TEST(Timing, MakesBurstsLongerThatTurnOutShort) {
  Rehearsal rehearsal = rehearse({.candidate = {.held_up = only(kWarmUp), .held_up_us = 500'000}});
  TimingOptions options = steady();
  options.burst.burst_us = 400'000;
  EXPECT_GT(timed(rehearsal, options).performance.timing.calls, 2);
  EXPECT_EQ(runs(rehearsal, "candidate")[kWarmUp].calls, 1);
}

// A process that is slow until its bursts are measured out has one call a burst, and gains so much
// more by what it claims.
TEST(Timing, BeginsAnewWithLongerBurstsThanASlowWarmUpFound) {
  constexpr NumberRange kUntilSecond{1, kBefore + 2};
  Rehearsal rehearsal = rehearse({.candidate = {.held_up = kUntilSecond, .held_up_us = 500'000}});
  TimingOptions options = steady();
  options.burst.burst_us = 400'000;
  const task::Timing found = timed(rehearsal, options).performance.timing;
  EXPECT_EQ(found.calls, kCalls);
  EXPECT_EQ(found.bursts, kPairs);
  const std::vector<int64_t> calls = calls_of(runs(rehearsal, "candidate"));
  ASSERT_THAT(calls, SizeIs(Ge(kBefore + 3 + kPairs + 1)));
  EXPECT_THAT(std::vector(calls.begin() + kBefore, calls.begin() + kBefore + 3), Each(1));
  EXPECT_THAT(std::vector(calls.end() - kPairs - 1, calls.end()), Each(kCalls));
}

// ---- Charges ------------------------------------------------------------------------------------

TEST(Timing, ChargesByTheClockWhoClaimsLessTime) {
  Rehearsal rehearsal = rehearse(
      {.candidate = {.call_us = 8000, .share_claimed = 0.1}, .baseline = {.call_us = 8000}});
  TimingOptions options = steady();
  options.charge.clock_slack_us = ChargeRules{}.clock_slack_us;
  const task::Performance found = timed(rehearsal, options).performance;
  EXPECT_GT(found.time_us.median, 6400);
  EXPECT_LT(found.speedup_eager.median, 1.25);
  EXPECT_GT(found.timing.clock_excess_us, 50'000);
  EXPECT_THAT(found.timing.notes, ElementsAre(HasSubstr("5 bursts took longer")));
  EXPECT_THAT(runs(rehearsal, "candidate"), SizeIs(kBefore + 2 * kPairs + 1)) << "not retaken";
}

// A device that still works for the candidate lets the judge wait.
TEST(Timing, ChargesUntilTheJudgeHasLookedWhoSaysTooEarlyThatAllIsDone) {
  Rehearsal rehearsal = rehearse({.judge = {.look_us = 64'000}, .candidate = {.call_us = 800}});
  TimingOptions options = steady();
  options.charge.look_slack_us = ChargeRules{}.look_slack_us;
  options.pairs_max = kPairs + 3;
  const task::Performance found = timed(rehearsal, options).performance;
  EXPECT_GT(found.time_us.median, 6400);
  EXPECT_GT(found.timing.look_excess_us, 50'000);
  EXPECT_THAT(found.timing.notes, ElementsAre(HasSubstr("outputs could not be copied")));
  EXPECT_EQ(found.timing.bursts, kPairs + 3);
}

TEST(Timing, GoesOnUntilAJudgeThatIsLateWasPromptOnce) {
  const NumberRange all_but_the_last{.last = kBefore + kPairs + 8};
  Rehearsal rehearsal = rehearse({.judge = {.late = all_but_the_last, .look_us = 64'000}});
  TimingOptions options = steady();
  options.charge.look_slack_us = 32'000;
  const task::Timing found = timed(rehearsal, options).performance.timing;
  EXPECT_THAT(found.notes, IsEmpty());
  EXPECT_LE(found.look_excess_us, 32'000);
  EXPECT_GT(found.bursts, kPairs + 8);
}

TEST(Timing, TakesABurstAgainThatWasHeldUp) {
  Rehearsal rehearsal =
      rehearse({.candidate = {.held_up = {kMiddle, kMiddle + 1}, .held_up_us = 200'000}});
  TimingOptions options = steady();
  options.charge.clock_slack_us = 100'000;
  const task::Timing found = timed(rehearsal, options).performance.timing;
  EXPECT_THAT(found.notes, IsEmpty());
  EXPECT_EQ(found.bursts, kPairs);
  EXPECT_GE(found.retaken, 2);
  EXPECT_LE(found.clock_excess_us, 100'000);
  EXPECT_THAT(runs(rehearsal, "candidate"), SizeIs(Ge(kBefore + kPairs + 2 + 1)));
}

TEST(Timing, ChargesTheHostsTimeWhereQueueingDoesNotHideIt) {
  Rehearsal rehearsal = rehearse({.candidate = {.queue_us = 2000}});
  TimingOptions options = steady();
  options.charge.host_us_free = ChargeRules{}.host_us_free;
  const task::Performance found = timed(rehearsal, options).performance;
  EXPECT_GE(found.time_us.median, 2000);
  EXPECT_THAT(found.timing.notes, ElementsAre(HasSubstr("keeps the host busy")));
  EXPECT_LT(found.timing.retaken, kPairs) << "it is so by nature";
}

TEST(Timing, TakesABurstAgainThatWasQueuedSlowly) {
  Rehearsal rehearsal =
      rehearse({.candidate = {.queue_us = 20'000, .queues_slowly = {kMiddle, kMiddle + 1}}});
  TimingOptions options = steady();
  options.charge.host_us_free = 5000;
  const task::Timing found = timed(rehearsal, options).performance.timing;
  EXPECT_THAT(found.notes, IsEmpty());
  EXPECT_GE(found.retaken, 2);
}

TEST(Timing, LeavesABurstAloneThatWasQueuedSlowlyWhereTheDeviceTakesLonger) {
  Rehearsal rehearsal = rehearse(
      {.candidate = {.call_us = 30'000, .queue_us = 15'000, .queues_slowly = {kMiddle, kMiddle}}});
  TimingOptions options = steady();
  // Less than the queueing takes, more than a sleeper waits on a busy machine.
  options.charge.host_us_free = 5000;
  const task::Timing found = timed(rehearsal, options).performance.timing;
  EXPECT_THAT(found.notes, IsEmpty());
  EXPECT_EQ(found.retaken, 0);
}

// Whose host stands still cannot keep the device busy while the baseline is timed.
TEST(Timing, LetsACandidateStandStillWhileTheBaselineRuns) {
  Rehearsal rehearsal = rehearse({.candidate = {.stirs = true}});
  timed(rehearsal, steady());
  const std::vector<Scene> scenes = rehearsal.scenes();
  std::map<std::string, int> stirs;  // By who runs, from the gate's opening to the judge's look.
  std::map<std::string, int> runs;
  std::string running;
  for (const Scene& scene : scenes) {
    if (scene.what == "run") ++runs[running = scene.who];
    if (scene.what == "look") running.clear();
    if (scene.what == "stir" && !running.empty()) ++stirs[running];
  }
  EXPECT_GE(runs["baseline"], kPairs);
  EXPECT_EQ(stirs["baseline"], 0);
  EXPECT_GT(stirs["candidate"], 0);
}

// ---- Looks at outputs ---------------------------------------------------------------------------

TEST(Timing, LooksAtTheLastCallOfEachBurstAndAtOthers) {
  Rehearsal rehearsal = rehearse({});
  TimingOptions options = steady();
  options.looks = 3;
  const int64_t verified = timed(rehearsal, options).performance.timing.calls_verified;
  for (const Scene& look : rehearsal.scenes("judge", "look")) {
    ASSERT_THAT(look.looks, SizeIs(3));
    EXPECT_THAT(look.looks[0], testing::AnyOf(1, kCalls - 1));  // Two calls in warm-up.
    EXPECT_THAT(look.looks, Each(Le(look.looks[0])));
  }
  EXPECT_THAT(rehearsal.scenes("judge", "verify"), SizeIs(kBefore + kPairs + 1));
  EXPECT_EQ(verified, 2 * kWarmUp + 3 * (1 + kPairs + 1));
}

TEST(Timing, LooksAtOneCallWhereOutputsAreLarge) {
  Rehearsal rehearsal = rehearse({.judge = {.outputs_bytes = 1e8}});
  EXPECT_EQ(timed(rehearsal, steady()).performance.timing.calls_verified, kBefore + kPairs + 1);
}

TEST(Timing, LooksAtNothingAmongBaselines) {
  Rehearsal rehearsal = rehearse({.judge = {.wrong = kAlways}});
  TimingOptions options = steady();
  options.is_trusted = true;
  EXPECT_EQ(timed(rehearsal, options).performance.timing.calls_verified, 0);
  EXPECT_THAT(rehearsal.scenes("judge", "verify"), IsEmpty());
}

class WrongFrom : public ::testing::TestWithParam<uint32_t> {};

TEST_P(WrongFrom, IsDecidedAtOnce) {
  Rehearsal rehearsal = rehearse({.judge = {.wrong = since(GetParam())}});
  const task::Outcome outcome = decided(rehearsal);
  const auto* wrong = std::get_if<task::Wrong>(&outcome);
  ASSERT_NE(wrong, nullptr);
  ASSERT_THAT(wrong->trials, SizeIs(1));
  EXPECT_EQ(wrong->trials[0].shape, "native");
  EXPECT_THAT(wrong->trials[0].checks,
              ElementsAre(Field(&task::OutputCheck::detail, HasSubstr("as the script says"))));
  EXPECT_THAT(runs(rehearsal, "candidate"), SizeIs(GetParam()));
  EXPECT_THAT(rehearsal.scenes("judge", "close"), SizeIs(1));
}

INSTANTIATE_TEST_SUITE_P(Timing, WrongFrom,
                         ::testing::Values(1, 2, kWarmUp, kBefore, kMiddle, kBefore + kPairs + 1));

TEST(Timing, DecidesInWarmUpWhatIsWrongThere) {
  Rehearsal rehearsal = rehearse({.judge = {.wrong = since(kWarmUp)}});
  const StageLimits stage_limits = limits();
  const TimingOptions options = steady();
  Timing timing(rehearsal.judge(), stage_limits, options, nullptr);
  const auto decided = timing.warm_up(rehearsal.candidate(), rehearsal.baseline());
  ASSERT_TRUE(decided && *decided);
  EXPECT_TRUE(std::holds_alternative<task::Wrong>(**decided));
}

// ---- Memory -------------------------------------------------------------------------------------

// The least that is free where so many calls fit, to a MiB.
double free_bytes_for(int calls) {
  const JudgeScript script;
  const BurstRoom room{{script.inputs_bytes, script.outputs_bytes}};
  double free_bytes = 0;
  while (room.calls_max(free_bytes) < calls) free_bytes += 1 << 20;
  return free_bytes;
}

TEST(Timing, UsesMemoryAgainThatHasRoom) {
  Rehearsal rehearsal = rehearse({});
  TimingOptions options = steady();
  options.burst.calls_max = 2;
  timed(rehearsal, options);
  EXPECT_THAT(calls_of(rehearsal.scenes("judge", "inputs")), ElementsAre(2, 2));
  EXPECT_THAT(rehearsal.scenes("judge", "arena"), SizeIs(2));
}

TEST(Timing, AsksForMemoryAgainForMoreCalls) {
  Rehearsal rehearsal = rehearse({});
  timed(rehearsal, steady());
  EXPECT_THAT(calls_of(rehearsal.scenes("judge", "inputs")), ElementsAre(2, 2, 8, 8));
  EXPECT_THAT(rehearsal.scenes("judge", "arena"), SizeIs(4));
}

TEST(Timing, HasOneCallABurstWhereOneFits) {
  const double free_bytes = free_bytes_for(1);
  Rehearsal rehearsal = rehearse({.judge = {.free_bytes = {free_bytes}}});
  EXPECT_EQ(timed(rehearsal, steady()).performance.timing.calls, 1);
  EXPECT_THAT(calls_of(runs(rehearsal, "candidate")), Each(1));
  EXPECT_THAT(calls_of(runs(rehearsal, "baseline")), Each(1));
  for (const Scene& arena : rehearsal.scenes("judge", "arena")) {
    EXPECT_LT(static_cast<double>(arena.nbytes), free_bytes / 2);
  }
}

TEST(Timing, HasOneCallABurstWhereNotEvenOneSeemsToFit) {
  Rehearsal rehearsal = rehearse({.judge = {.free_bytes = {0}}});
  EXPECT_EQ(timed(rehearsal, steady()).performance.timing.calls, 1);
  EXPECT_THAT(calls_of(runs(rehearsal, "candidate")), Each(1));
}

TEST(Timing, TakesItsShareOfADeviceThatIsFull) {
  Rehearsal rehearsal = rehearse(
      {.judge = {.free_bytes = {free_bytes_for(1)}, .total_bytes = 8 * free_bytes_for(4)}});
  EXPECT_THAT(timed(rehearsal, steady()).performance.timing.calls, AllOf(Ge(4), Le(5)));
}

TEST(Timing, LooksForRoomAgainOnceItIsAlone) {
  Rehearsal rehearsal = rehearse({.judge = {.free_bytes = {free_bytes_for(1), free_bytes_for(4)}}});
  EXPECT_THAT(timed(rehearsal, steady()).performance.timing.calls, AllOf(Ge(4), Le(5)));
  std::vector<Scene> scenes = runs(rehearsal, "candidate");
  scenes.resize(kWarmUp);
  EXPECT_THAT(calls_of(scenes), Each(1));
}

TEST(Timing, GivesNobodyLessThanItHasAlready) {
  Rehearsal rehearsal =
      rehearse({.judge = {.free_bytes = {free_bytes_for(kCalls), free_bytes_for(1)}}});
  EXPECT_EQ(timed(rehearsal, steady()).performance.timing.calls, 2);
  EXPECT_THAT(rehearsal.scenes("judge", "inputs"), SizeIs(2));
}

// ---- What the judge has for it ------------------------------------------------------------------

TEST(Timing, GivesTheJudgesMemoryBackOnce) {
  Rehearsal rehearsal = rehearse({});
  {
    const StageLimits stage_limits = limits();
    Timing timing(rehearsal.judge(), stage_limits, steady(), nullptr);
    ASSERT_TRUE(timing.warm_up(rehearsal.candidate(), rehearsal.baseline()));
    ASSERT_TRUE(timing.run());
    EXPECT_EQ(rehearsal.scenes().back().what, "close");
  }
  EXPECT_THAT(rehearsal.scenes("judge", "plan"), SizeIs(1));
  EXPECT_THAT(rehearsal.scenes("judge", "close"), SizeIs(1));
}

TEST(Timing, GivesTheJudgesMemoryBackWhereItOnlyWarmedUp) {
  Rehearsal rehearsal = rehearse({});
  {
    const StageLimits stage_limits = limits();
    Timing timing(rehearsal.judge(), stage_limits, steady(), nullptr);
    ASSERT_TRUE(timing.warm_up(rehearsal.candidate(), rehearsal.baseline()));
    EXPECT_THAT(rehearsal.scenes("judge", "close"), IsEmpty());
  }
  EXPECT_THAT(rehearsal.scenes("judge", "close"), SizeIs(1));
}

TEST(Timing, TakesNothingOfTheJudgeBeforeItWarmsUp) {
  Rehearsal rehearsal = rehearse({});
  {
    const StageLimits stage_limits = limits();
    const Timing timing(rehearsal.judge(), stage_limits, steady(), nullptr);
  }
  EXPECT_THAT(rehearsal.scenes(), IsEmpty());
}

// ---- Traced bursts ------------------------------------------------------------------------------

TEST(Timing, TracesTwoBurstsAmongThePairsAndOneAtTheEnd) {
  Rehearsal rehearsal = rehearse({});
  TimingOptions options = steady();
  options.bursts_traced = 2;
  EXPECT_EQ(timed(rehearsal, options).performance.timing.bursts, kPairs);
  std::vector<Scene> candidate = runs(rehearsal, "candidate");
  std::vector<Scene> baseline = runs(rehearsal, "baseline");
  EXPECT_THAT(candidate, SizeIs(kBefore + kPairs + 3));
  EXPECT_TRUE(candidate.back().traced && baseline.back().traced);
  EXPECT_EQ(num_traced(candidate), 1 + 2 + 1) << "one of them in warm-up";
  EXPECT_EQ(num_traced(baseline), 1 + 1);
  EXPECT_FALSE(candidate[candidate.size() - 2].traced) << "not among the pairs";
}

TEST(Timing, WorkThatDoesNotWaitForTheGateIsTimedInOpenBursts) {
  Rehearsal rehearsal = rehearse({.candidate = {.begins_early = true}});
  for (const int among_pairs : {0, 2}) {
    TimingOptions options = steady();
    options.bursts_traced = among_pairs;
    const Timed found = timed(rehearsal, options);
    EXPECT_EQ(found.performance.timing.mode, "open");
    EXPECT_EQ(found.performance.timing.bursts, kPairs);
    EXPECT_THAT(found.performance.timing.notes, Contains(HasSubstr("without waiting")));
    const std::vector<Scene> candidate = runs(rehearsal, "candidate");
    const auto counted = std::span(candidate).last(kPairs + 1);
    EXPECT_TRUE(std::ranges::none_of(counted, &Scene::gated)) << "all that count";
  }
}

TEST(Timing, ABaselineMayBeginAsItLikes) {
  Rehearsal rehearsal = rehearse({.baseline = {.begins_early = true}});
  EXPECT_THAT(timed(rehearsal, steady()).performance.timing.notes, IsEmpty());
  for (const std::string who : {"candidate", "baseline"}) {
    const std::vector<Scene> bursts = runs(rehearsal, who);
    const auto counted = std::span(bursts).last(kPairs + 1);
    EXPECT_TRUE(std::ranges::all_of(counted, &Scene::gated)) << who;
  }
}

TEST(Timing, CarriesOverTheKernelsOfTracedBursts) {
  Rehearsal rehearsal = rehearse({.candidate = {.launches = 4}, .baseline = {.launches = 9}});
  TimingOptions options = steady();
  options.bursts_traced = 2;
  const Timed found = timed(rehearsal, options);
  EXPECT_THAT(found.traced, SizeIs(3));
  for (const TracedBurst& burst : found.traced) {
    EXPECT_EQ(burst.calls, kCalls);
    ASSERT_THAT(burst.kernels, SizeIs(1));
    EXPECT_EQ(burst.kernels[0].launches, 4 * kCalls);
    EXPECT_EQ(burst.kernels[0].owner, "owner.so");
  }
}

// One gap for each call, whatever its launches: a call of one kernel has that kernel's time.
TEST(Timing, ChargesWhatTracedKernelsTakeWhoIsFastOnlyWithoutATrace) {
  Rehearsal rehearsal = rehearse({.candidate = {.call_us = 200, .share_traced = 5}});
  const Timed found = timed(rehearsal, steady());
  EXPECT_NEAR(found.claimed_us, 200, 4);
  EXPECT_NEAR(found.performance.time_us.median, 1000, 20);
  EXPECT_THAT(found.performance.timing.notes, ElementsAre(HasSubstr("where they were traced")));
}

// ---- Launches -----------------------------------------------------------------------------------

TEST(Timing, NotesACallThatLaunchesNothing) {
  EXPECT_FALSE(idle({}));
  EXPECT_TRUE(idle({.candidate = {.idle = only(kMiddle)}}));
}

// As where a reference returns what it was given.
TEST(Timing, NotesItNotWhereTheBaselineLaunchesNothingEither) {
  EXPECT_FALSE(idle({.candidate = {.idle = kAlways}, .baseline = {.idle = kAlways}}));
}

TEST(Timing, TakesTheGapFromTheProcess) {
  Rehearsal rehearsal = rehearse(
      {.candidate = {.call_us = 20, .gap_us = 0.9}, .baseline = {.call_us = 20, .gap_us = 1.2}});
  const task::Performance found = timed(rehearsal, steady()).performance;
  EXPECT_NEAR(found.time_us.median, 19.1, 0.01);
  EXPECT_NEAR(found.time_eager_us.median, 18.8, 0.01);
}

}  // namespace
}  // namespace mc::timing
