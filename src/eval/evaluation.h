// SPDX-License-Identifier: Apache-2.0
//
// Evaluation: a prepared candidate's way from its judge to its verdict.
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
#include "eval/pipeline.h"
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

// The state that evaluations share; outlives them.
struct EvaluationContext {
  const Options& options;
  const SeedKey& key;
  const legality::Policy& policy;
  const execute::RunPolicy& run_policy;  // The policy of the same.
  execute::Executor& executor;
  const Machine& machine;
  JudgePool& judges;
  KnownTasks& known_tasks;
  const timing::Nvml* nvml;      // Null without a device.
  const Device* compute_device;  // One of the machine's; null without a device.
  const DeviceSchedule device;
  const BaselineStore& baselines;
  bool is_alone = false;  // Nothing else uses the device or its memory meanwhile.
  // A second failure that only the candidate could have made fail is the candidate's.
  bool is_second = false;
  Clock clock{};
  // The place for what the last candidate process sent, where that is recorded.
  std::optional<Result<execute::CandidateRecording>>* recording = nullptr;
};

class TimingStage;

class Evaluation {
 public:
  // REQUIRES: both outlive it.
  Evaluation(const EvaluationContext& context, const PreparedCandidate& prepared);
  ~Evaluation();
  // `Infra` where something fails that is not the candidate's, also where something throws.
  task::Verdict run();

  // True if memory was what decided; other evaluations may have held it.
  bool is_short_of_memory() const { return is_short_of_memory_; }

 private:
  Stage open_judge();
  // In the process of `idle`, where there is one.
  Stage open_new_judge(std::unique_ptr<execute::Judge> idle, bool takes_all);
  void hold_memory(int64_t bytes);
  Scheduler::Hold take_turn();
  void note_fixed_sizes(const task::Outcome& outcome);
  Stage measure();
  Status excuse(const execute::Program& program, task::Outcome& outcome);
  bool is_timed() const;
  const task::Correctness& correctness() const;
  Stage strict();
  Stage time();
  void end_candidate();
  execute::Program program();
  execute::Program located_program();

  const EvaluationContext& context_;
  const PreparedCandidate& prepared_;
  Schedule::Use use_;
  std::optional<Scheduler::Hold> memory_;

  task::Verdict verdict_;
  bool is_short_of_memory_ = false;
  std::string judge_key_;
  worker::AnswerTime answer_time_;  // The rest of the candidate's.
  JudgePool::Seat seat_;            // The judge's.
  std::unique_ptr<execute::Judge> judge_;
  // The CPU backend's mapper.
  std::unique_ptr<compile::LocationMapper> mapper_;
  std::optional<task::Outcome> passed_;  // The outcome by correctness, until all else is over.
  std::unique_ptr<execute::Session> candidate_;     // Null where another one is to be timed.
  std::unique_ptr<execute::DeviceProcess> device_;  // The candidate process's, if another holds it.
};

// Equal for candidates that one open judge can serve, one after the other.
std::string judge_key_of(const PreparedCandidate& prepared);

// Evaluates; where that fails without being the candidate's fault, or for want of memory that
// others may have held, once more, with a fresh judge and a fresh candidate process.  REQUIRES:
// `context` are not those of a second time.
task::Verdict evaluate(EvaluationContext context, const PreparedCandidate& prepared);

}  // namespace mc::eval

#endif  // MC_EVAL_EVALUATION_H_
