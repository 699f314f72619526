// SPDX-License-Identifier: Apache-2.0
//
// TimingStage: times a candidate that passed against PyTorch, and finds the owners of its kernels.
// Processes warm up beside other evaluations; then they are timed alternately, with exclusive use
// of the device: first the candidate and its baseline; then, where it is not in the cache,
// torch.compile and eager.  See docs/timing.md.
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
  Schedule::Use use;  // For the start and warm-up of processes.
  task::Correctness correctness{};
};

class TimingStage {
 public:
  // REQUIRES: both outlive the stage.
  TimingStage(const EvaluationContext& context, const TimingSubject& subject)
      : context_(context), subject_(subject), lap_start_(context.clock.now()) {}

  execute::Stage<task::Performance> run(execute::Session& candidate,
                                        execute::DeviceProcess& device);

  // The time of each part so far, waiting for the device included.
  const std::vector<task::StageTime>& stage_times() const { return stage_times_; }

 private:
  using EarlyOutcome = std::optional<task::Outcome>;
  using Timed = timing::CallComparison::Timed;
  // Two programs that are timed alternately.
  struct Processes {
    std::string name;  // The prefix of their stage times.
    timing::TimedProcess own;
    timing::TimedProcess other;
    // True for a slow warm-up that hardly uses the device: it takes no turn, so that no evaluation
    // waits for it.
    bool is_slow = false;
  };
  execute::Stage<Timed> compare(const Processes& processes);
  Result<timing::TimedProcess> baseline();
  Status end_baseline();
  timing::Provenance owners_of(const Timed& timed) const;
  std::string device_and_driver() const;
  Status find_device_speed();

  BaselineKey compiled_key() const;
  bool wants_compiled() const;
  Result<CompiledBaseline> compiled_baseline();
  void compare_with_compiled(task::Performance& performance);
  void end_stage(const std::string& name);

  const EvaluationContext& context_;
  const TimingSubject& subject_;
  std::optional<timing::DeviceSpeed> speed_;
  // A second process of the candidate as its own baseline.
  std::optional<execute::CandidateProcess> again_;
  std::vector<task::StageTime> stage_times_;
  Clock::TimePoint lap_start_;
};

}  // namespace mc::eval

#endif  // MC_EVAL_TIMING_STAGE_H_
