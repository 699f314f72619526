// SPDX-License-Identifier: Apache-2.0
//
// The stage around a comparison; timing/comparison_run_test.cc has the comparison itself.
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
#include "eval/test_stand.h"

namespace mc::eval {
namespace {

using execute::Role;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Use = DeviceShare::Use;

constexpr double kFasterThanMemory = 6e9;  // Bytes, which take the device 2 ms.

class TimingStageTest : public testing::Test {
 protected:
  TimingStageTest() : scripts_(Stand::scripts_of_a_quiet_device()) {}

  Stand& stand() {
    if (stand_ == nullptr) stand_ = std::make_unique<Stand>(scripts_);
    return *stand_;
  }

  execute::Stage<task::Performance> run(std::unique_ptr<execute::Session> passed = nullptr) {
    const task::Task task{"task", "task", source_};
    const execute::Program program{"class ModelNew: pass", {}, {}, false};
    std::vector<compile::Artifact> artifacts(1);
    artifacts[0].library = kLibrary;
    execute::Judge judge = stand().judge();
    const EvaluationContext context = stand().context();
    const TimingSubject subject{task, program, artifacts, judge, Use::kShared};
    TimingStage stage(context, subject);
    auto ran = stage.run(std::move(passed));
    laps_ = stage.laps();
    // However it ends, the device is free.
    stand().device.take(Use::kExclusive);
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
  Outcome decided(std::unique_ptr<execute::Session> passed = nullptr) {
    auto ran = run(std::move(passed));
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
    for (const task::StageTime& lap : laps_) names.push_back(lap.stage);
    return names;
  }

  int64_t num_spawned(Role role) { return std::ranges::count(stand().spawned, role); }

  std::string source_ = "class Model: pass";
  timing::Behaviors scripts_;
  std::unique_ptr<Stand> stand_;
  std::vector<task::StageTime> laps_;
};

TEST_F(TimingStageTest, TimesACandidateAgainstTheTasksModel) {
  const task::Performance found = performance();
  EXPECT_NEAR(found.time_us.median, 2000, 1);
  EXPECT_NEAR(found.time_eager_us.median, 4000, 1);
  EXPECT_NEAR(found.speedup_eager.median, 2, 1e-3);
  EXPECT_FALSE(found.speedup_compile.has_value());
  EXPECT_EQ(found.own_share, 1);
  ASSERT_THAT(found.kernels, SizeIs(1));
  EXPECT_EQ(found.floor.bytes, 2 << 20);
  EXPECT_EQ(found.floor.bandwidth_gbs, 3000);
  EXPECT_EQ(found.timing.batches, timing::RunOptions().pairs);
  EXPECT_THAT(found.timing.notes, IsEmpty());
  EXPECT_THAT(stand().spawned, ElementsAre(Role::kContestant, Role::kBaseline));
}

TEST_F(TimingStageTest, TellsHowLongEachPartTook) {
  performance();
  EXPECT_THAT(lap_names(), ElementsAre("time.wait", "time.start", "time.warm_up", "time.wait_alone",
                                       "time.alone"));
  EXPECT_EQ(laps_[3].ms, 0);
  // At least thirteen pairs of about 20 ms for each process.
  EXPECT_GT(laps_[4].ms, 13 * 40);
  EXPECT_GT(laps_[2].ms, 0);
}

TEST_F(TimingStageTest, TakesFewerPairsWhereItIsToBeQuick) {
  stand().options.timing.is_quick = true;
  EXPECT_EQ(performance().timing.batches, 5);
}

TEST_F(TimingStageTest, TakesAsManyPairsAsItsBudgetLets) {
  stand().options.timing.budget_s = 0;
  EXPECT_EQ(performance().timing.batches, timing::RunOptions().pairs_min);
}

TEST_F(TimingStageTest, EndsTheContestantAndKeepsTheBaselineForAnotherTask) {
  const auto before = stand().contestants().num_alive();  // The simulation's own.
  const auto before_baselines = stand().baselines().num_alive();
  performance();
  EXPECT_EQ(stand().contestants().num_alive(), before);
  EXPECT_EQ(stand().baselines().num_alive(), before_baselines + 1);
  EXPECT_EQ(stand().baselines().asked().back(), "release");
  source_ = "class Model: another";
  performance();
  EXPECT_EQ(num_spawned(Role::kBaseline), 1);
  stand().executor.end_idle_baselines();
  EXPECT_EQ(stand().baselines().num_alive(), before_baselines);
}

TEST_F(TimingStageTest, TakesANewBaselineWhereTheKeptOneFails) {
  performance();
  int num_loads = 0;
  stand().baselines().on<worker::BaselineLoadQuestion>(
      [&](const auto&, const Fd&) -> worker::Reaction {
        if (++num_loads == 1) return worker::Refusal{"exception", "load", {}};
        return worker::BaselineLoadAnswer().to_json();
      });
  performance();
  EXPECT_EQ(num_loads, 2);
  EXPECT_EQ(num_spawned(Role::kBaseline), 2);
}

TEST_F(TimingStageTest, KeepsNoBaselineThatDoesNotReleaseItsMemory) {
  stand().baselines().fail<worker::BaselineReleaseQuestion>(worker::Refusal{"exception", "", {}});
  performance();
  performance();
  EXPECT_EQ(num_spawned(Role::kBaseline), 2);
}

TEST_F(TimingStageTest, KeepsNoBaselineOfATaskThatChangesSettings) {
  source_ = "torch.backends.cudnn.benchmark = True\nclass Model: pass";
  performance();
  performance();
  EXPECT_EQ(num_spawned(Role::kBaseline), 2);
}

TEST_F(TimingStageTest, BuildsTheContestantThatPassedAnew) {
  auto passed = std::make_unique<execute::Session>(stand().contestants().session());
  ASSERT_TRUE(run(std::move(passed)));
  EXPECT_THAT(stand().spawned, ElementsAre(Role::kBaseline));
  EXPECT_EQ(stand().contestants().asked().front(), "build");
}

TEST_F(TimingStageTest, IsACrashWhereItCannotBeBuiltAnew) {
  stand().contestants().fail<worker::ContestantBuildQuestion>(
      execute::Refusal{"exception", "", {"ValueError", "no", {}, {}}});
  auto passed = std::make_unique<execute::Session>(stand().contestants().session());
  EXPECT_EQ(decided<task::Crashed>(std::move(passed)).stage, "init");
  EXPECT_EQ(decided<task::Crashed>().stage, "init");
}

TEST_F(TimingStageTest, TimesACandidateAgainstItselfToTestTheTiming) {
  stand().options.timing.baseline = "candidate";
  // Two of one actor would share one page: this one only has to be started.
  stand().contestants().fail<worker::ContestantTimeGateQuestion>(execute::Death{9, 0});
  decided<task::Crashed>();
  EXPECT_THAT(stand().spawned, ElementsAre(Role::kContestant, Role::kContestant));
}

// ---- What ends it -------------------------------------------------------------------------------

TEST_F(TimingStageTest, IsACrashWhereTheCandidateDiesInABatch) {
  scripts_.candidate.ending = {timing::Ending::Kind::kDies, "finish", 7};
  EXPECT_EQ(decided<task::Crashed>().exit_code, timing::Ending::kExitCode);
}

TEST_F(TimingStageTest, IsACrashWhereTheCandidateDiesWarmingUp) {
  scripts_.candidate.ending = {timing::Ending::Kind::kDies, "finish", 1};
  decided<task::Crashed>();
  EXPECT_THAT(lap_names(), ElementsAre("time.wait", "time.start", "time.warm_up"));
}

TEST_F(TimingStageTest, FailsWhereTheBaselineDies) {
  scripts_.baseline.ending = {timing::Ending::Kind::kDies, "finish", 7};
  const auto ran = run();
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, ErrorCode::kUnavailable);
}

TEST_F(TimingStageTest, FailsWhereTheBaselineCannotBeStarted) {
  stand().baselines().fail<worker::BaselineLoadQuestion>(
      execute::Refusal{"exception", "", {"ValueError", "no such model", {}, {}}});
  const auto ran = run();
  ASSERT_FALSE(ran);
  EXPECT_THAT(ran.error().message, HasSubstr("no such model"));
}

TEST_F(TimingStageTest, FailsWhereTheJudgeDoes) {
  for (const auto fail : {+[](worker::FakeWorker& judges) {
                            judges.fail<worker::JudgeTimePlanQuestion>(execute::Death{9, 0});
                          },
                          +[](worker::FakeWorker& judges) {
                            judges.fail<worker::JudgeTimeSpeedQuestion>(execute::Death{9, 0});
                          },
                          +[](worker::FakeWorker& judges) {
                            judges.fail<worker::JudgeTimeVerifyQuestion>(execute::Death{9, 0});
                          }}) {
    stand_.reset();
    fail(stand().judges());
    EXPECT_FALSE(run());
  }
}

TEST_F(TimingStageTest, IsWrongWhereATimedCallIs) {
  scripts_.judge.wrong = timing::since(8);
  EXPECT_EQ(decided<task::Wrong>().trials.at(0).distribution, "timed");
}

// ---- What is not believed -----------------------------------------------------------------------

TEST_F(TimingStageTest, IsIllegalWhereATimedCallLaunchesNothing) {
  scripts_.candidate.idle = timing::kAlways;
  stand().run_policy.own_launches_min = 1;
  stand().policy.kernels.own_share_min = 0.5;
  EXPECT_EQ(rule_of_illegal(), "run.own_launch");
  stand().run_policy.own_launches_min = 0;
  performance();
}

TEST_F(TimingStageTest, IsIllegalWhereTheKernelsAreAnothers) {
  scripts_.candidate.owner = "libcublas.so";
  stand().policy.kernels.foreign.id = "run.foreign_kernel";
  EXPECT_EQ(rule_of_illegal(), "run.foreign_kernel");
  stand().policy.kernels.foreign_owners = {"libcublas.so"};
  stand().policy.kernels.foreign_allowed = {"*"};
  EXPECT_EQ(performance().own_share, 0);
}

TEST_F(TimingStageTest, KnowsTheCandidatesLibraryAlsoWhereItIsOnItsShelf) {
  scripts_.candidate.owner = execute::path_on_shelf(0, kLibrary).string();
  EXPECT_EQ(performance().own_share, 1);
}

TEST_F(TimingStageTest, TimesTwiceWhatIsFasterThanMemoryAllows) {
  scripts_.judge.inputs_bytes = kFasterThanMemory;
  scripts_.candidate.call_us = 100;
  const task::Performance found = performance();
  EXPECT_THAT(found.timing.notes, Contains(HasSubstr("timed twice")));
  EXPECT_EQ(num_spawned(Role::kContestant), 2);
  EXPECT_GT(found.floor.time_us, 2000);
  EXPECT_THAT(lap_names(), Contains("time.again.alone"));
}

TEST_F(TimingStageTest, DoesNotTimeTwiceWhatIsAsFastAsMemory) {
  scripts_.judge.inputs_bytes = kFasterThanMemory;
  scripts_.candidate.call_us = 1700;  // Some of it may lie in a cache.
  EXPECT_THAT(performance().timing.notes, IsEmpty());
  EXPECT_EQ(num_spawned(Role::kContestant), 1);
}

TEST_F(TimingStageTest, IsIllegalWhereTheTraceDoesNotConfirmWhatMemoryDoesNotAllow) {
  scripts_.judge.inputs_bytes = kFasterThanMemory;
  scripts_.candidate.call_us = 100;
  scripts_.candidate.share_traced = 20;
  const auto illegal = decided<task::Illegal>();
  EXPECT_EQ(illegal.when, "timing");
  ASSERT_THAT(illegal.findings, SizeIs(1));
  EXPECT_EQ(illegal.findings[0].rule, "timing.under_floor");
  EXPECT_THAT(illegal.findings[0].message, HasSubstr("claims 100 us a call"));
}

TEST_F(TimingStageTest, LooksAtManyMoreOutputsTheSecondTime) {
  const auto copied_at_most = [&] {
    performance();
    size_t most = 0;
    for (const timing::Record& copies : stand().simulation.records("judge", "snapshot_outputs")) {
      most = std::max(most, copies.picks.size() - static_cast<size_t>(copies.late));
    }
    return most;
  };
  EXPECT_EQ(copied_at_most(), 4u);
  scripts_.judge.inputs_bytes = kFasterThanMemory;
  scripts_.candidate.call_us = 100;
  stand_.reset();
  EXPECT_EQ(copied_at_most(), 16u);
}

// ---- A device that others use -------------------------------------------------------------------

TEST_F(TimingStageTest, SaysWhereTheDeviceWasNotQuiet) {
  scripts_.judge.fill_gbs = {1000};
  EXPECT_THAT(performance().timing.notes, ElementsAre(HasSubstr("something else used the device")));
  // It waited for that, on the clock.
  EXPECT_GT(laps_[4].ms, 10'000);
}

TEST_F(TimingStageTest, SaysWhereTheDeviceWasNotQuietAfterwards) {
  scripts_.judge.fill_gbs = {2000, 1000};
  EXPECT_THAT(performance().timing.notes, ElementsAre(HasSubstr("something else used the device")));
}

TEST_F(TimingStageTest, MeasuresTheDevicesSpeedOnce) {
  performance();
  performance();
  EXPECT_THAT(stand().simulation.records("judge", "speed"), SizeIs(1));
}

// ---- torch.compile ------------------------------------------------------------------------------

TEST_F(TimingStageTest, ComparesWithTorchCompileWhichIsTimedOnce) {
  stand().options.timing.compile_mode = "default";
  for (int i = 0; i < 2; ++i) {
    const task::Performance found = performance();
    ASSERT_TRUE(found.speedup_compile && found.time_compile_us);
    EXPECT_NEAR(found.speedup_compile->median, 1.5, 2e-3);
    EXPECT_NEAR(found.time_compile_us->median, 3000, 1);
  }
  // The eager one, for all; and once the compiled one.
  EXPECT_EQ(num_spawned(Role::kBaseline), 2);
}

TEST_F(TimingStageTest, VerifiesNothingThatABaselineReturns) {
  stand().options.timing.compile_mode = "default";
  performance();
  std::vector<std::string> asked = stand().judges().asked();
  std::ranges::reverse(asked);
  const auto last_plan = std::ranges::find(asked, "time_plan");
  EXPECT_THAT(std::vector(asked.begin(), last_plan), Not(Contains("time_verify")));
  EXPECT_THAT(std::vector(last_plan, asked.end()), Contains("time_verify"));
}

TEST_F(TimingStageTest, TellsTheModeToItsProcessAlone) {
  std::vector<std::string> modes;
  for (worker::FakeWorker* models : {&stand().baselines(), &stand().simulation.compiled()}) {
    models->on<worker::BaselineBuildQuestion>([&](const auto& asked, const Fd&) {
      modes.push_back(asked.compile);
      return worker::BaselineBuildAnswer();
    });
  }
  stand().options.timing.compile_mode = "max-autotune";
  performance();
  EXPECT_THAT(modes, ElementsAre("", "max-autotune"));
}

TEST_F(TimingStageTest, IsNoFaultOfTheCandidateWhereTorchCompileFails) {
  stand().options.timing.compile_mode = "default";
  scripts_.compiled.ending = {timing::Ending::Kind::kDies, "enqueue", 1};
  stand_.reset();
  stand().options.timing.compile_mode = "default";
  const task::Performance found = performance();
  EXPECT_NEAR(found.speedup_eager.median, 2, 1e-3);
  EXPECT_FALSE(found.speedup_compile.has_value());
  EXPECT_THAT(found.timing.notes, ElementsAre(HasSubstr("torch.compile: ")));
  // A failure is not kept.
  performance();
  EXPECT_EQ(stand().simulation.compiled().num_sessions(), 2);
}

}  // namespace
}  // namespace mc::eval
