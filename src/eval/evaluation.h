// SPDX-License-Identifier: Apache-2.0
//
// Evaluation: takes a prepared candidate from opening its judge to its verdict.
#ifndef MC_EVAL_EVALUATION_H_
#define MC_EVAL_EVALUATION_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/hash.h"
#include "core/result.h"
#include "eval/judge_pool.h"
#include "eval/options.h"
#include "eval/prepared.h"
#include "eval/scheduler.h"
#include "eval/steps.h"
#include "execute/executor.h"
#include "task/verdict.h"

namespace mc::compile {
class LocationMapper;
}  // namespace mc::compile
namespace mc::legality {
struct Policy;
}  // namespace mc::legality
namespace mc::timing {
class Nvml;
}  // namespace mc::timing

namespace mc::eval {

class BaselineStore;
class KnownTasks;
struct Device;
struct Machine;

// The state that evaluations share.  It outlives them.
struct EvaluationContext {
  const Options& options;
  const SeedKey& key;
  const legality::Policy& policy;
  const execute::RunPolicy& run_policy;  // The run policy of `policy`.
  execute::Executor& executor;
  const Machine& machine;
  JudgePool& judges;
  KnownTasks& known_tasks;
  const timing::Nvml* nvml;      // Null without a device.
  const Device* compute_device;  // A device of the machine; null without a device.
  const DeviceSchedule device;
  const BaselineStore& baselines;
  bool is_alone = false;  // True if no other evaluation uses the device or its memory.
  // True for the second attempt.  A failure that only the candidate can have caused, if it happens
  // again, is then the candidate's.
  bool is_second = false;
  Clock clock{};
  // Receives the recording of the last candidate process's commands; null where none is wanted.
  std::optional<Result<execute::CandidateRecording>>* recording = nullptr;
};

class TimingStage;

class Evaluation {
 public:
  // REQUIRES: both outlive the evaluation.
  Evaluation(const EvaluationContext& context, const PreparedCandidate& prepared);
  ~Evaluation();
  // `Infra` where something other than the candidate fails, also where something throws.
  task::Verdict run();

  // True if the outcome is due to a lack of memory, which other evaluations may have held.
  bool is_short_of_memory() const { return is_short_of_memory_; }

 private:
  Stage open_judge();
  // Opens the judge in the process of `idle`, or in a new process where `idle` is null.
  Stage open_new_judge(std::unique_ptr<execute::Judge> idle, bool takes_all);
  void hold_memory(int64_t bytes);
  Scheduler::Hold take_turn();
  void note_fixed_sizes(const task::Outcome& outcome);
  Stage measure();
  Status check_limitation(const execute::Program& program, task::Outcome& outcome);
  bool is_timed() const;
  const task::Correctness& correctness() const;
  Stage strict();
  Stage time();
  Status end_candidate();
  execute::Program program();
  execute::Program located_program();

  const EvaluationContext& context_;
  const PreparedCandidate& prepared_;
  Schedule::Use use_;
  std::optional<Scheduler::Hold> memory_;

  task::Verdict verdict_;
  bool is_short_of_memory_ = false;
  std::string judge_key_;
  worker::TimeBudget time_budget_;  // The rest of the candidate's total time limit.
  JudgePool::Seat seat_;            // The seat of the judge.
  std::unique_ptr<execute::Judge> judge_;
  // Null without a device in software.
  std::unique_ptr<compile::LocationMapper> mapper_;
  // The outcome of correctness, until all later stages have ended.
  std::optional<task::Outcome> passed_;
  std::unique_ptr<execute::Session> candidate_;  // Null where another one is to be timed.
  // The candidate process's device process, if it has one.
  std::unique_ptr<execute::DeviceProcess> device_;
};

// A key that is equal for candidates that one open judge can serve, one after the other.
std::string judge_key_of(const PreparedCandidate& prepared);

// Evaluates.  Where the evaluation fails without the candidate's fault, or for lack of memory that
// other evaluations may have held, it is repeated once, with a new judge and a new candidate
// process.  REQUIRES: `context` is that of a first attempt.
task::Verdict evaluate(EvaluationContext context, const PreparedCandidate& prepared);

}  // namespace mc::eval

#endif  // MC_EVAL_EVALUATION_H_
