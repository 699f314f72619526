// SPDX-License-Identifier: Apache-2.0
#include "eval/race_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "core/cancel.h"
#include "eval/machine.h"

namespace mc::eval {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;

task::KernelFinding finding(const std::string& kind) {
  task::KernelFinding one;
  one.kind = kind;
  one.kernel = "row_sum";
  one.location = {"cuda_sources[0]", 7, 0, "out[row] = sum;"};
  return one;
}

task::Trial trial(const std::string& shape, bool passed,
                  std::vector<task::KernelFinding> findings = {}) {
  task::Trial one;
  one.shape = shape;
  one.passed = passed;
  one.findings = std::move(findings);
  return one;
}

task::Trial with_wrong_values(task::Trial one) {
  one.checks.push_back({.path = "output", .problem = "value"});
  return one;
}

task::Verdict verdict_with(task::Outcome outcome) {
  task::Verdict verdict;
  verdict.outcome = std::move(outcome);
  return verdict;
}

task::Verdict passed_by_gpu() {
  return verdict_with(task::Passed{{trial("native", true), trial("ragged", true)}, {}, 1});
}

task::Wrong wrong_by(const std::string& kind) {
  return {0, false, {trial("native", false, {finding(kind)}), trial("ragged", false)}};
}

task::Crashed crashed_by(const std::string& kind) {
  return {
      "forward", task::Exception{"CudaError", "an illegal address", {}, {}}, 0, 0, {finding(kind)},
      {}};
}

const RaceSubject kSubject{{"task", "task", "class Model: pass"}, {"a", "1"}, {}};

// The verdict after a check by this judge.
task::Verdict finished(RaceChecker::Create create, task::Verdict verdict, double wait_s = 20) {
  const RaceChecker checker(std::move(create));
  checker.start(kSubject).finish(verdict, wait_s);
  return verdict;
}
RaceChecker::Create judge_that_says(task::Outcome outcome) {
  return [outcome] { return RaceJudge([outcome](const auto&) { return verdict_with(outcome); }); };
}

TEST(RaceCheck, MakesItsFindingsTheOutcomeOfACandidateThatTheGpuPasses) {
  for (const char* kind :
       {"shared_race", "global_race", "uninitialised_shared", "uninitialised_global"}) {
    const task::Verdict verdict = finished(judge_that_says(wrong_by(kind)), passed_by_gpu());
    EXPECT_EQ(verdict.outcome, task::Outcome(wrong_by(kind)));
    EXPECT_EQ(verdict.telemetry.race_check.state, "found");
    EXPECT_THAT(verdict.telemetry.race_check.device, HasSubstr("sm_90"));
  }
  for (const char* kind : {"out_of_bounds_read", "misaligned", "divergent_barrier", "deadlock"}) {
    const task::Verdict verdict = finished(judge_that_says(crashed_by(kind)), passed_by_gpu());
    EXPECT_EQ(verdict.outcome, task::Outcome(crashed_by(kind)));
    EXPECT_EQ(verdict.telemetry.race_check.state, "found");
  }
}

TEST(RaceCheck, DecidesOnHostOutputsAndOnNoOtherRule) {
  const auto illegal = [](const char* rule) {
    return task::Illegal{"run", {{rule, "the host made them", {}}}};
  };
  const task::Verdict made = finished(judge_that_says(illegal("run.host_output")), passed_by_gpu());
  EXPECT_EQ(made.outcome, task::Outcome(illegal("run.host_output")));
  EXPECT_EQ(made.telemetry.race_check.state, "found");
  const task::Verdict other = finished(judge_that_says(illegal("run.aten")), passed_by_gpu());
  EXPECT_EQ(other.outcome, passed_by_gpu().outcome);
}

TEST(RaceCheck, LeavesACleanCandidateUnchanged) {
  const task::Verdict verdict =
      finished(judge_that_says(task::Passed{{trial("reduced", true)}, {}, 1}), passed_by_gpu());
  EXPECT_EQ(verdict.outcome, passed_by_gpu().outcome);
  EXPECT_EQ(verdict.telemetry.race_check.state, "clean");
  EXPECT_EQ(verdict.telemetry.race_check.reason, "");
  EXPECT_THAT(verdict.telemetry.stages,
              Contains(Field(&task::StageTime::stage, "wait.race_check")));
}

TEST(RaceCheck, WithoutAResultChangesNoOutcomeAndRecordsTheReason) {
  const task::Wrong by_values{0, false, {with_wrong_values(trial("native", false))}};
  const struct {
    task::Outcome outcome;
    const char* reason;
  } kTable[] = {
      {task::Unsupported{{{"device.unsupported", "no wgmma.mma_async", {}}}},
       "unsupported there: no wgmma.mma_async"},
      {task::Infra{"the machine failed"}, "infra there: the machine failed"},
      {task::CompileFailed{}, "compile there"},
      {task::TimedOut{"forward", 30, {finding("shared_race")}}, "timeout there"},
      {by_values, "wrong there"},
      {wrong_by("launch_error"), "wrong there"},
      {crashed_by("launch_error"), "runtime there: an illegal address"},
      {crashed_by("shared_race"), "runtime there: an illegal address"},
  };
  for (const auto& row : kTable) {
    const task::Verdict verdict = finished(judge_that_says(row.outcome), passed_by_gpu());
    EXPECT_EQ(verdict.outcome, passed_by_gpu().outcome) << row.reason;
    EXPECT_EQ(verdict.telemetry.race_check.state, "not_run") << row.reason;
    EXPECT_EQ(verdict.telemetry.race_check.reason, row.reason);
  }
}

TEST(RaceCheck, DropsAFindingAtAShapeThatDoesNotCountBesideWrongValues) {
  task::Wrong wrong{0, false, {trial("native", false), trial("ragged", false)}};
  wrong.trials[1].findings = {finding("global_race")};  // The only fault, so this shape counts.
  EXPECT_EQ(finished(judge_that_says(wrong), passed_by_gpu()).telemetry.race_check.state, "found");
  wrong.trials[0] = with_wrong_values(wrong.trials[0]);
  EXPECT_EQ(finished(judge_that_says(wrong), passed_by_gpu()).telemetry.race_check.state,
            "not_run");
}

TEST(RaceCheck, DropsFindingsAtReducedSizesOfACandidateForTheTasksSizesAlone) {
  task::Verdict checked = verdict_with(crashed_by("out_of_bounds_read"));
  checked.telemetry.reduction.reason = "one forward is too large";
  const auto state = [&](task::Passed passed) {
    task::Verdict verdict = verdict_with(std::move(passed));
    merge_race_check(checked, verdict);
    return verdict.telemetry.race_check.state;
  };
  EXPECT_EQ(state({{trial("native", true), trial("ragged", true)}, {}, 1}), "found");
  EXPECT_EQ(state({{trial("native", true), trial("ragged", false)}, {}, 0}), "not_run");
  EXPECT_EQ(state({{trial("native", true)}, {}, 1}), "not_run");
  checked.telemetry.reduction.reason = "";
  EXPECT_EQ(state({{trial("native", true)}, {}, 1}), "found");
}

TEST(RaceCheck, OfACandidateThatFailsWithoutItIsCancelled) {
  std::atomic<bool> has_started = false, was_cancelled = false;
  const RaceChecker checker([&] {
    return RaceJudge([&](const auto&) {
      has_started = true;
      while (!is_cancelled()) std::this_thread::yield();
      was_cancelled = true;
      return verdict_with(task::Infra{});
    });
  });
  const task::Verdict failed = verdict_with(task::Wrong{0.5, false, {trial("native", false)}});
  task::Verdict verdict = failed;
  {
    RaceCheck check = checker.start(kSubject);
    while (!has_started) std::this_thread::yield();
    check.finish(verdict);
  }
  EXPECT_EQ(verdict.outcome, failed.outcome);
  EXPECT_EQ(verdict.telemetry.race_check.state, "not_needed");
  EXPECT_TRUE(was_cancelled);
}

TEST(RaceCheck, ThatIsLateIsCancelled) {
  const auto create = [] {
    return RaceJudge([](const auto&) {
      while (!is_cancelled()) std::this_thread::yield();
      return verdict_with(wrong_by("shared_race"));
    });
  };
  const task::Verdict verdict = finished(create, passed_by_gpu(), /*wait_s=*/0);
  EXPECT_EQ(verdict.outcome, passed_by_gpu().outcome);
  EXPECT_EQ(verdict.telemetry.race_check.state, "not_run");
  EXPECT_THAT(verdict.telemetry.race_check.reason, HasSubstr("time limit"));
}

TEST(RaceCheck, IsCancelledWithItsRequest) {
  const RaceChecker checker([] {
    return RaceJudge([](const auto&) {
      while (!is_cancelled()) std::this_thread::yield();
      return verdict_with(task::Infra{});
    });
  });
  std::stop_source stop;
  const CancelScope scope(stop.get_token());
  RaceCheck check = checker.start(kSubject);
  stop.request_stop();
  task::Verdict verdict = passed_by_gpu();
  check.finish(verdict);
  EXPECT_EQ(verdict.telemetry.race_check.state, "not_run");
}

TEST(RaceCheck, WithoutItsSetUpRecordsWhatIsMissing) {
  const auto create = [] {
    return Result<RaceJudge>(Error{ErrorCode::kUnavailable, "nvcc is missing"});
  };
  const task::Verdict verdict = finished(create, passed_by_gpu());
  EXPECT_EQ(verdict.outcome, passed_by_gpu().outcome);
  EXPECT_EQ(verdict.telemetry.race_check.state, "not_run");
  EXPECT_EQ(verdict.telemetry.race_check.reason, "nvcc is missing");
}

TEST(RaceCheck, ForAFailedCandidateWaitsForNoSetUp) {
  std::atomic<bool> may_return = false;
  const RaceChecker checker([&] {
    while (!may_return) std::this_thread::yield();
    return Result<RaceJudge>(Error{ErrorCode::kUnavailable, "late"});
  });
  task::Verdict verdict = verdict_with(task::CompileFailed{});
  checker.start(kSubject).finish(verdict);
  EXPECT_EQ(verdict.telemetry.race_check.state, "not_needed");
  may_return = true;
}

TEST(RaceCheck, HasFewTrialsWithTheTasksOwnValuesUnderTheSameRules) {
  task::Correctness asked;
  asked.require_general = true;
  asked.precision = "fp16";
  const task::Correctness own = race_correctness(asked);
  EXPECT_EQ(own.trials, 2);
  EXPECT_EQ(own.inputs, "native");
  EXPECT_TRUE(own.require_general && own.shapes);
  EXPECT_EQ(own.precision, "fp16");
  asked.trials = 1;
  EXPECT_EQ(race_correctness(asked).trials, 1);
}

TEST(RaceCheck, IsOnByDefaultWithTwoCoresForEachCandidate) {
  Machine machine;
  machine.devices = {{"GPU-a"}};
  machine.race_checker = task::Backend::kCpu;
  Options options;
  EXPECT_TRUE(checks_races(options, machine, 16));
  EXPECT_FALSE(checks_races(options, machine, 15));
  options.jobs = 4;
  EXPECT_TRUE(checks_races(options, machine, 8));
  options.race_check = RaceCheckMode::kOff;
  EXPECT_FALSE(checks_races(options, machine, 8));
  options.race_check = RaceCheckMode::kOn;
  EXPECT_TRUE(checks_races(options, machine, 1));
  machine.devices.clear();  // A machine that prepares for a device that is not here.
  EXPECT_FALSE(checks_races(options, machine, 64));
  machine.devices = {{"MTT"}};
  machine.race_checker.reset();
  EXPECT_FALSE(checks_races(options, machine, 64));
}

TEST(Protocol, SaysWhetherRacesWereChecked) {
  const Device device{"GPU-a"};
  Options options;
  options.race_check = RaceCheckMode::kOn;
  EXPECT_TRUE(protocol_of(options, &device, "musacoder/6", {}).race_check);
  options.race_check = RaceCheckMode::kOff;
  EXPECT_FALSE(protocol_of(options, &device, "musacoder/6", {}).race_check);
}

}  // namespace
}  // namespace mc::eval
