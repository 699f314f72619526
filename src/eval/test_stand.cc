// SPDX-License-Identifier: Apache-2.0
#include "eval/test_stand.h"

#include <cstdlib>
#include <utility>

namespace mc::eval {

timing::Behaviors Stand::scripts_of_a_quiet_device() {
  timing::Behaviors behaviors;
  behaviors.judge.fill_gbs = {2000};
  behaviors.candidate = {.call_us = 2000, .owner = kLibrary};
  behaviors.baseline = {.call_us = 4000};
  behaviors.compiled = {.call_us = 3000};
  return behaviors;
}

Stand::Stand(timing::Behaviors behaviors)
    : simulation(behaviors),
      executor(
          execute::Zygotes([this](auto role, const auto& limits) { return spawn(role, limits); }),
          {}, {}) {
  ::setenv("MC_CACHE_DIR", folder.path().c_str(), /*overwrite=*/1);
  machine.device = Device{"GPU-test", 0, {}};
  judges().say<worker::JudgeOpenQuestion>({});
  judges().say<worker::JudgeBeginQuestion>(
      {{.shapes = {{"native", {}, {}}}, .trials = {{0, 0, "native"}}}});
  judges().say<worker::JudgeInitQuestion>({.init_seed = 7, .training = true});
  judges().say<worker::JudgeTrialQuestion>({});
  judges().say<worker::JudgeCheckQuestion>({.passed = true});
  contestants().say<worker::ContestantLoadQuestion>({});
  contestants().say<worker::ContestantBuildQuestion>({});
  contestants().say<worker::ContestantRunQuestion>({.launches = 1});
  for (worker::FakeWorker* models : {&simulation.baselines(), &simulation.compiled()}) {
    models->say<worker::BaselineLoadQuestion>({});
    models->say<worker::BaselineBuildQuestion>({});
    models->say<worker::BaselineReleaseQuestion>({});
  }
}

EvaluationContext Stand::context() {
  EvaluationContext context{options, key,     policy, run_policy, executor, machine,
                            pool,    nullptr, device, memory,     store};
  context.is_second = is_second;
  context.clock = simulation.clock();
  return context;
}

execute::Judge Stand::judge() {
  execute::Judge judge(judges().session());
  MC_CHECK(judge.begin(1, 20).has_value());
  return judge;
}

Result<execute::Session> Stand::spawn(execute::Role role, const execute::ChildLimits& limits) {
  spawned.push_back(role);
  if (role == execute::Role::kJudge) return judges().session();
  if (role == execute::Role::kContestant) return contestants().session();
  if (role != execute::Role::kBaseline) return Error{ErrorCode::kUnavailable, "nobody plays that"};
  return (limits.runs_programs ? simulation.compiled() : baselines()).session();
}

}  // namespace mc::eval
