// SPDX-License-Identifier: Apache-2.0
#include "eval/fakes/evaluation_fixture.h"

#include <cstdlib>
#include <utility>

namespace mc::eval {

EvaluationFixture::EvaluationFixture()
    : executor(
          execute::Zygotes([this](auto role, const auto& limits) { return spawn(role, limits); }),
          /*warm_judges=*/nullptr, execute::StageLimits()) {
  ::setenv("MC_CACHE_DIR", folder.path().c_str(), /*overwrite=*/1);
  judges().say<worker::JudgeEstimateRequest>({});
  judges().say<worker::JudgeOpenRequest>({});
  judges().say<worker::JudgeBeginRequest>(
      {{.shapes = {{"native", {}, {}}}, .trials = {{0, 0, "native"}}}});
  judges().say<worker::JudgeInitRequest>({.init_seed = 7, .training = true});
  judges().say<worker::JudgeTrialRequest>({});
  judges().say<worker::JudgeCheckRequest>({.passed = true});
  candidates().say<worker::CandidateLoadRequest>({});
  candidates().say<worker::CandidateBuildThereRequest>({});
  candidates().say<worker::CandidateRunThereRequest>({});
  devices().say<worker::DeviceOpenRequest>({});
  devices().say<worker::DeviceAllowRequest>({});
  devices().say<worker::DevicePutRequest>({});
  devices().say<worker::DeviceReleaseRequest>({});
  devices().say<worker::DeviceTakeRequest>({});
  devices().say<worker::DeviceCloseRequest>({.is_clean = true});
  timed.compiled.say<worker::BaselineLoadRequest>({});
  timed.compiled.say<worker::BaselineBuildRequest>({});
}

EvaluationContext EvaluationFixture::context() {
  EvaluationContext context{
      options, key,  policy,      run_policy, executor,
      machine, pool, known_tasks, nullptr,    compute_device ? &*compute_device : nullptr,
      device,  store};
  context.is_second = is_second;
  context.clock = timed.time.clock();
  return context;
}

execute::Judge EvaluationFixture::judge() {
  execute::Judge judge(judges().session());
  MC_CHECK(judge.begin(1, 20).has_value());
  return judge;
}

size_t EvaluationFixture::num_waiting() {
  return scheduler.with_schedule([](Schedule& now) { return now.num_waiting(0); });
}

Result<execute::Session> EvaluationFixture::spawn(execute::Role role,
                                                  const execute::ChildLimits& limits) {
  if (role == execute::Role::kDevice) return devices().session();
  spawned.push_back(role);
  if (role == execute::Role::kJudge) return judges().session();
  if (role == execute::Role::kCandidate) return candidates().session();
  if (role != execute::Role::kBaseline) return Error{ErrorCode::kUnavailable, "nobody plays that"};
  MC_CHECK(limits.runs_programs);  // A compiled baseline starts compilers.
  return timed.compiled.session();
}

}  // namespace mc::eval
