// SPDX-License-Identifier: Apache-2.0
//
// For tests: the state that evaluations share, with fake workers (worker/fakes/fake_worker.h) in
// place of child processes and a device, and with a clock of its own.  Each role answers every
// request, and the judge finds everything right, unless a test configures it otherwise.
#ifndef MC_EVAL_FAKES_EVALUATION_FIXTURE_H_
#define MC_EVAL_FAKES_EVALUATION_FIXTURE_H_

#include <optional>
#include <vector>

#include "core/file.h"
#include "eval/baseline_store.h"
#include "eval/evaluation.h"
#include "eval/judge_pool.h"
#include "eval/known_tasks.h"
#include "eval/machine.h"
#include "eval/memory_need.h"
#include "eval/pipeline.h"
#include "eval/scheduler.h"
#include "execute/executor.h"
#include "legality/policy.h"
#include "timing/fakes/timed_fakes.h"
#include "worker/fakes/fake_worker.h"

namespace mc::eval {

inline constexpr const char* kLibrary = "/tmp/own.so";  // The library of the candidate.

class EvaluationFixture {
 public:
  EvaluationFixture();

  EvaluationContext context();
  // A judge that has opened the task and begun a candidate.
  execute::Judge judge();
  // The number of requests that wait for the device.
  size_t num_waiting();

  worker::FakeWorker& judges() { return timed.judges; }
  worker::FakeWorker& candidates() { return timed.candidates; }
  worker::FakeWorker& devices() { return timed.devices; }

  TemporaryDirectory folder = TemporaryDirectory::create("mc-fixture").value();
  timing::TimedFakes timed;
  Options options;
  SeedKey key = SeedKey::from(1);
  legality::Policy policy;
  execute::RunPolicy run_policy{"test", {"*"}, 0};
  execute::Executor executor;
  Machine machine;
  std::optional<Device> compute_device = Device{"GPU-test", 0, {}};
  JudgePool pool;
  KnownTasks known_tasks;
  Scheduler scheduler{{capacity_of(int64_t{80} << 30)}};
  DeviceSchedule device{scheduler, 0};
  BaselineStore store{folder.path() / "baselines"};
  bool is_second = false;
  std::vector<execute::Role> spawned;  // In order, without device processes.

 private:
  Result<execute::Session> spawn(execute::Role role, const execute::ChildLimits& limits);
};

}  // namespace mc::eval

#endif  // MC_EVAL_FAKES_EVALUATION_FIXTURE_H_
