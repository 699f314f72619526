// SPDX-License-Identifier: Apache-2.0
//
// TimingStage: a candidate that passed, timed against PyTorch; what its kernels are, and whether
// the claim can be believed.  docs/timing.md.
//
//   started, warmed up     beside others on the device
//   timed by turns         alone on it
//
// first for the candidate against its baseline; then, where nobody measured it yet, for
// torch.compile against eager.  A claim that no memory allows is looked at a second time.
#ifndef MC_EVAL_TIMING_STAGE_H_
#define MC_EVAL_TIMING_STAGE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "eval/baseline_store.h"
#include "eval/device_share.h"
#include "eval/evaluation.h"
#include "execute/executor.h"
#include "task/verdict.h"
#include "timing/comparison_run.h"
#include "timing/device_quiet.h"
#include "timing/device_speed.h"
#include "timing/provenance.h"

namespace mc::eval {

struct TimingSubject {
  const task::Task& task;
  const execute::Program& program;
  const std::vector<compile::Artifact>& artifacts;
  execute::Judge& judge;
  DeviceShare::Use use;  // While processes start and warm up.
  task::Correctness correctness{};
};

class TimingStage {
 public:
  // REQUIRES: both outlive it.
  TimingStage(const EvaluationContext& context, const TimingSubject& subject)
      : context_(context), subject_(subject), lap_start_(context.clock.now()) {}

  // `contestant` is the one that passed, or null where another one is to be started.
  execute::Stage<task::Performance> run(std::unique_ptr<execute::Session> contestant);

  // The same for one whose device another process holds.
  execute::Stage<task::Performance> run_by_calls(execute::Session& contestant,
                                                 execute::DeviceProcess& device);

  // What took how long so far, waiting for the device included.
  const std::vector<task::StageTime>& laps() const { return laps_; }

 private:
  using EarlyOutcome = std::optional<task::Outcome>;
  using SessionPointer = std::unique_ptr<execute::Session>;
  // Two processes timed by turns.
  struct Comparison {
    std::string name;  // Of its laps.
    std::function<execute::Stage<SessionPointer>()> start;
    timing::RunOptions options;
    execute::StageLimits limits;
    bool is_last = true;  // The baseline's process is not needed any more.
    bool is_slow =
        false;  // To start: nobody waits for that, for what little it uses of the device.
  };
  struct Processes {
    SessionPointer candidate;
    execute::Session* baseline = nullptr;  // The stage keeps it.
  };
  execute::Stage<timing::Timed> run_comparison(const Comparison& wanted);
  execute::Stage<timing::Timed> run_alone(timing::ComparisonRun& comparison, Processes& processes);
  execute::Stage<SessionPointer> ready(SessionPointer contestant);
  Result<execute::Session*> baseline();
  void end_baseline(bool may_serve_again);
  execute::BaselineOptions options_of(const std::string& compile_mode) const;
  Result<EarlyOutcome> time_again(timing::Timed& timed);
  Result<EarlyOutcome> check_claim(timing::Timed& timed);
  timing::Provenance owners_of(const timing::Timed& timed) const;
  std::string device_and_driver() const;
  Status find_device_speed();

  BaselineKey compiled_key() const;
  bool wants_compiled() const;
  bool lacks_compiled() const;
  Result<CompiledBaseline> compiled_baseline();
  void compare_with_compiled(task::Performance& performance);
  void lap(const std::string& name);

  const EvaluationContext& context_;
  const TimingSubject& subject_;
  std::optional<timing::DeviceSpeed> speed_;
  std::optional<execute::Session> baseline_;  // Serves one comparison after the other.
  std::vector<task::StageTime> laps_;
  Clock::TimePoint lap_start_;
};

}  // namespace mc::eval

#endif  // MC_EVAL_TIMING_STAGE_H_
