// SPDX-License-Identifier: Apache-2.0
#include "eval/fakes/test_stand.h"

#include <cstdlib>
#include <utility>

namespace mc::eval {

Stand::Stand()
    : executor(
          execute::Zygotes([this](auto role, const auto& limits) { return spawn(role, limits); }),
          /*spare_judges=*/nullptr, execute::StageLimits()) {
  ::setenv("MC_CACHE_DIR", folder.path().c_str(), /*overwrite=*/1);
  judges().say<worker::JudgeEstimateQuestion>({});
  judges().say<worker::JudgeOpenQuestion>({});
  judges().say<worker::JudgeBeginQuestion>(
      {{.shapes = {{"native", {}, {}}}, .trials = {{0, 0, "native"}}}});
  judges().say<worker::JudgeInitQuestion>({.init_seed = 7, .training = true});
  judges().say<worker::JudgeTrialQuestion>({});
  judges().say<worker::JudgeCheckQuestion>({.passed = true});
  candidates().say<worker::CandidateLoadQuestion>({});
  candidates().say<worker::CandidateBuildThereQuestion>({});
  candidates().say<worker::CandidateRunThereQuestion>({});
  devices().say<worker::DeviceOpenQuestion>({});
  devices().say<worker::DeviceAllowQuestion>({});
  devices().say<worker::DevicePutQuestion>({});
  devices().say<worker::DeviceReleaseQuestion>({});
  devices().say<worker::DeviceTakeQuestion>({});
  devices().say<worker::DeviceCloseQuestion>({.is_clean = true});
  timed.compiled.say<worker::BaselineLoadQuestion>({});
  timed.compiled.say<worker::BaselineBuildQuestion>({});
}

EvaluationContext Stand::context() {
  EvaluationContext context{
      options, key,  policy,      run_policy, executor,
      machine, pool, known_tasks, nullptr,    compute_device ? &*compute_device : nullptr,
      device,  store};
  context.is_second = is_second;
  context.clock = timed.time.clock();
  return context;
}

execute::Judge Stand::judge() {
  execute::Judge judge(judges().session());
  MC_CHECK(judge.begin(1, 20).has_value());
  return judge;
}

size_t Stand::num_waiting() {
  return scheduler.look([](Schedule& now) { return now.num_waiting(0); });
}

Result<execute::Session> Stand::spawn(execute::Role role, const execute::ChildLimits& limits) {
  if (role == execute::Role::kDevice) return devices().session();
  spawned.push_back(role);
  if (role == execute::Role::kJudge) return judges().session();
  if (role == execute::Role::kCandidate) return candidates().session();
  if (role != execute::Role::kBaseline) return Error{ErrorCode::kUnavailable, "nobody plays that"};
  MC_CHECK(limits.runs_programs);  // A compiled baseline starts compilers.
  return timed.compiled.session();
}

}  // namespace mc::eval
