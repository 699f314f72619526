// SPDX-License-Identifier: Apache-2.0
//
// TimingStage: a candidate that passed, timed against PyTorch; and what its kernels are.
// Both warm up beside others on the device, and are timed by turns alone on it: first the candidate
// and its baseline; then, where nobody measured it yet, torch.compile and eager.  docs/timing.md.
#ifndef MC_EVAL_TIMING_STAGE_H_
#define MC_EVAL_TIMING_STAGE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "eval/baseline_store.h"
#include "eval/evaluation.h"
#include "eval/schedule.h"
#include "execute/executor.h"
#include "task/verdict.h"
#include "timing/call_comparison.h"
#include "timing/device_speed.h"
#include "timing/provenance.h"

namespace mc::eval {

struct TimingSubject {
  const task::Task& task;
  const execute::Program& program;
  const std::vector<compile::Artifact>& artifacts;
  execute::Judge& judge;
  Schedule::Use use;  // While processes start and warm up.
  task::Correctness correctness{};
};

class TimingStage {
 public:
  // REQUIRES: both outlive it.
  TimingStage(const EvaluationContext& context, const TimingSubject& subject)
      : context_(context), subject_(subject), lap_start_(context.clock.now()) {}

  execute::Stage<task::Performance> run(execute::Session& candidate,
                                        execute::DeviceProcess& device);

  // The time that each part took so far, waiting for the device included.
  const std::vector<task::StageTime>& laps() const { return laps_; }

 private:
  using EarlyOutcome = std::optional<task::Outcome>;
  using Timed = timing::CallComparison::Timed;
  // Two that are timed by turns.
  struct Contenders {
    std::string name;  // Its laps'.
    timing::Contender own;
    timing::Contender other;
    bool is_slow = false;  // To warm up: nobody waits for that, for what little it uses the device.
  };
  execute::Stage<Timed> compare(const Contenders& contenders);
  Result<timing::Contender> baseline();
  void end_baseline();
  timing::Provenance owners_of(const Timed& timed) const;
  std::string device_and_driver() const;
  Status find_device_speed();

  BaselineKey compiled_key() const;
  bool wants_compiled() const;
  Result<CompiledBaseline> compiled_baseline();
  void compare_with_compiled(task::Performance& performance);
  void lap(const std::string& name);

  const EvaluationContext& context_;
  const TimingSubject& subject_;
  std::optional<timing::DeviceSpeed> speed_;
  std::optional<execute::CandidateProcess> again_;  // The candidate as its own baseline.
  std::vector<task::StageTime> laps_;
  Clock::TimePoint lap_start_;
};

}  // namespace mc::eval

#endif  // MC_EVAL_TIMING_STAGE_H_
