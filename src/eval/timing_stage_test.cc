// SPDX-License-Identifier: Apache-2.0
//
// The stage around a comparison; timing/call_comparison_test.cc has the comparison itself.
#include "eval/timing_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "compile/toolchain.h"
#include "eval/fakes/evaluation_fixture.h"

namespace mc::eval {
namespace {

using execute::Role;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Use = Schedule::Use;

class TimingStageTest : public testing::Test {
 protected:
  TimingStageTest() {
    timed().own_us = 2000;
    timed().eager_us = 4000;
    timed().compiled_us = 3000;
  }

  timing::TimedFakes& timed() { return fixture_.timed; }

  execute::Stage<task::Performance> run() {
    const task::Task task{"task", "task", source_};
    const execute::Program program{"class ModelNew: pass", {}, {}};
    std::vector<compile::Artifact> artifacts(1);
    artifacts[0].library = kLibrary;
    execute::Judge judge = fixture_.judge();
    const EvaluationContext context = fixture_.context();
    const TimingSubject subject{task, program, artifacts, judge, Use::kShared};
    execute::Session candidate = fixture_.candidates().session();
    execute::DeviceProcess device(fixture_.devices().session(), 10);
    TimingStage stage(context, subject);
    auto ran = stage.run(candidate, device);
    stage_times_ = stage.stage_times();
    // The device is free again, whatever the outcome is.
    fixture_.device.turn(Use::kExclusive);
    return ran;
  }

  task::Performance performance() {
    auto ran = run();
    if (!ran) ADD_FAILURE() << ran.error().message;
    auto* found = ran ? std::get_if<task::Performance>(&*ran) : nullptr;
    if (ran && found == nullptr) {
      ADD_FAILURE() << task::outcome_name(std::get<task::Outcome>(*ran));
    }
    return found == nullptr ? task::Performance() : std::move(*found);
  }

  template <typename Outcome>
  Outcome decided() {
    auto ran = run();
    if (!ran) ADD_FAILURE() << ran.error().message;
    auto* outcome = ran ? std::get_if<task::Outcome>(&*ran) : nullptr;
    auto* found = outcome == nullptr ? nullptr : std::get_if<Outcome>(outcome);
    if (found == nullptr) ADD_FAILURE() << "something else was decided";
    return found == nullptr ? Outcome() : std::move(*found);
  }

  std::string rule_of_illegal() {
    const auto illegal = decided<task::Illegal>();
    return illegal.findings.empty() ? "" : illegal.findings[0].rule;
  }

  std::vector<std::string> lap_names() const {
    std::vector<std::string> names;
    for (const task::StageTime& one : stage_times_) names.push_back(one.stage);
    return names;
  }

  int64_t num_spawned(Role role) { return std::ranges::count(fixture_.spawned, role); }

  std::string source_ = "class Model: pass";
  EvaluationFixture fixture_;
  std::vector<task::StageTime> stage_times_;
};

TEST_F(TimingStageTest, TimesACandidateAgainstTheTasksModel) {
  const task::Performance found = performance();
  EXPECT_NEAR(found.time_us.median, 2000, 1);
  EXPECT_NEAR(found.time_eager_us.median, 4000, 1);
  EXPECT_NEAR(found.speedup_eager.median, 2, 1e-3);
  EXPECT_FALSE(found.speedup_compile.has_value());
  EXPECT_EQ(found.own_share, 1);
  ASSERT_THAT(found.kernels, SizeIs(1));
  EXPECT_EQ(found.kernels[0].owner, "candidate");
  EXPECT_EQ(found.floor.bytes, 1024);
  EXPECT_EQ(found.floor.bandwidth_gbs, 3000);
  EXPECT_EQ(found.timing.batches, timing::CallOptions().rounds);
  EXPECT_THAT(found.timing.notes, IsEmpty());
  // The judge itself is the baseline, so no process was started.
  EXPECT_THAT(fixture_.spawned, IsEmpty());
}

TEST_F(TimingStageTest, RecordsTheTimeOfEachPart) {
  performance();
  EXPECT_THAT(lap_names(), ElementsAre("time.start", "time.wait", "time.warm_up", "time.wait_alone",
                                       "time.alone", "time.check"));
  EXPECT_EQ(stage_times_[3].ms, 0);
  // Thirteen rounds of about 20 ms.
  EXPECT_GT(stage_times_[4].ms, 13 * 15);
  EXPECT_GT(stage_times_[2].ms, 0);
}

TEST_F(TimingStageTest, TakesFewerRoundsInQuickMode) {
  fixture_.options.timing.is_quick = true;
  EXPECT_EQ(performance().timing.batches, 5);
}

TEST_F(TimingStageTest, TakesAsManyRoundsAsItsBudgetAllows) {
  fixture_.options.timing.budget_s = 0;
  EXPECT_EQ(performance().timing.batches, 3);
}

TEST_F(TimingStageTest, TimesACandidateAgainstItselfToTestTheTiming) {
  fixture_.options.timing.baseline = "candidate";
  EXPECT_NEAR(performance().speedup_eager.median, 1, 1e-3);
  EXPECT_THAT(fixture_.spawned, ElementsAre(Role::kCandidate));
  EXPECT_EQ(fixture_.candidates().num_alive(), 0);
}

// ---- Early outcomes and failures ----------------------------------------------------------------

TEST_F(TimingStageTest, IsACrashWhereTheCandidateDiesInABatch) {
  fixture_.candidates().fail<worker::CandidateTimeCallsThereRequest>(execute::ProcessEnd{0, 3});
  EXPECT_EQ(decided<task::Crashed>().exit_code, 3);
  EXPECT_THAT(lap_names(), ElementsAre("time.start", "time.wait", "time.warm_up"));
}

TEST_F(TimingStageTest, FailsWhereTheBaselineDies) {
  fixture_.judges().fail<worker::JudgeTimeCallsRequest>(execute::ProcessEnd{0, 3});
  const auto ran = run();
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, ErrorCode::kUnavailable);
}

TEST_F(TimingStageTest, FailsWhereTheJudgeDoes) {
  fixture_.judges().fail<worker::JudgeTimeSpeedRequest>(execute::ProcessEnd{9, 0});
  EXPECT_FALSE(run());
  fixture_.judges().fail<worker::JudgeTimePlanRequest>(execute::ProcessEnd{9, 0});
  EXPECT_FALSE(run());
}

TEST_F(TimingStageTest, IsWrongWhereTheOutputOfATimedCallIsWrong) {
  timed().problem = "off by one";
  EXPECT_EQ(decided<task::Wrong>().trials.at(0).distribution, "timed");
}

TEST_F(TimingStageTest, IsIllegalWhereATimedCallLaunchesNothing) {
  timed().launches_own = 0;
  fixture_.run_policy.own_launches_min = 1;
  EXPECT_EQ(rule_of_illegal(), "run.own_launch");
  fixture_.run_policy.own_launches_min = 0;
  performance();
}

TEST_F(TimingStageTest, IsIllegalWhereTheKernelsAreNotTheCandidates) {
  timed().kernels[0].owner = "/lib/libcublas.so";
  fixture_.policy.kernels.foreign.id = "run.foreign_kernel";
  EXPECT_EQ(rule_of_illegal(), "run.foreign_kernel");
  fixture_.policy.kernels.foreign_owners = {"libcublas.so"};
  fixture_.policy.kernels.foreign_allowed = {"*"};
  EXPECT_EQ(performance().own_share, 0);
}

TEST_F(TimingStageTest, IsIllegalWhereCallsSendMoreToTheHostThanTheyMay) {
  int64_t bytes = 0;
  fixture_.devices().on<worker::DeviceUsedRequest>([&](const auto&, const Fd&) {
    bytes += 1 << 20;
    return worker::DeviceUsedResponse{.bytes_to_host = bytes};
  });
  fixture_.run_policy.operators = {};
  EXPECT_EQ(rule_of_illegal(), "run.host_transfer");
}

// A forbidden kernel is refused and the call fails; the failure is not the reason of the outcome.
TEST_F(TimingStageTest, NamesTheForbiddenKernelAndNotTheFailureThatFollows) {
  fixture_.candidates().fail<worker::CandidateTimeCallsThereRequest>(
      execute::ErrorReply{"candidate", "", {"AcceleratorError", "not permitted", {}, {}}});
  fixture_.devices().say<worker::DeviceUsedRequest>({.forbidden = "_ZN2at6native4siluEv"});
  fixture_.run_policy.operators = {};
  EXPECT_EQ(rule_of_illegal(), "run.library_kernel");
  fixture_.run_policy.operators = {"*"};
  decided<task::Crashed>();
}

TEST_F(TimingStageTest, MeasuresTheDevicesSpeedOnce) {
  performance();
  performance();
  EXPECT_EQ(timed().num_speeds, 1);
}

// ---- torch.compile ------------------------------------------------------------------------------

TEST_F(TimingStageTest, ComparesWithTorchCompileWhichIsTimedOnce) {
  fixture_.options.timing.compile_mode = "default";
  for (int i = 0; i < 2; ++i) {
    const task::Performance found = performance();
    ASSERT_TRUE(found.speedup_compile && found.time_compile_us);
    EXPECT_NEAR(found.speedup_compile->median, 1.5, 2e-3);
    EXPECT_NEAR(found.time_compile_us->median, 3000, 1);
  }
  EXPECT_EQ(num_spawned(Role::kBaseline), 1);
}

TEST_F(TimingStageTest, SendsTheModeToTheBaselineProcess) {
  std::vector<std::string> modes;
  timed().compiled.on<worker::BaselineBuildRequest>([&](const auto& asked, const Fd&) {
    modes.push_back(asked.compile);
    return worker::BaselineBuildResponse();
  });
  fixture_.options.timing.compile_mode = "max-autotune";
  performance();
  EXPECT_THAT(modes, ElementsAre("max-autotune"));
}

TEST_F(TimingStageTest, IsNoFaultOfTheCandidateWhereTorchCompileFails) {
  fixture_.options.timing.compile_mode = "default";
  timed().compiled.fail<worker::BaselineTimeCallsRequest>(execute::ProcessEnd{0, 3});
  const task::Performance found = performance();
  EXPECT_NEAR(found.speedup_eager.median, 2, 1e-3);
  EXPECT_FALSE(found.speedup_compile.has_value());
  EXPECT_THAT(found.timing.notes, ElementsAre(HasSubstr("torch.compile: ")));
  // A failure is not stored.
  performance();
  EXPECT_EQ(timed().compiled.num_sessions(), 2);
}

}  // namespace
}  // namespace mc::eval
