// SPDX-License-Identifier: Apache-2.0
//
// Pipeline: the evaluation MooreEval on this machine.
//
// Preparing needs CPUs only (preparer.h): its result is a legal, compiled candidate or an outcome.
// Measuring needs a device; the CPU backend has one in software.  It has the stages correctness on
// secret inputs → runtime legality → performance.  Each stage runs only when the one before it
// passed.
//
//   MC_TRY(auto pipeline, eval::Pipeline::create({}, progress), "set up");
//   task::Verdict verdict = pipeline->evaluate(task, candidate);  // Prepares, then measures.
#ifndef MC_EVAL_PIPELINE_H_
#define MC_EVAL_PIPELINE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/result.h"
#include "eval/options.h"
#include "eval/prepared.h"
#include "eval/recording.h"
#include "task/correctness.h"
#include "task/evaluator.h"

namespace mc::eval {

// The result of a replay of a recording.
struct Replayed {
  std::string device;
  int64_t commands = 0;
  int64_t calls = 0;
  int64_t outputs = 0;                     // Compared outputs, including buffers.
  int64_t equal = 0;                       // Outputs that are equal bit by bit.
  std::vector<std::string> differences{};  // Outputs beyond the tolerance.
  std::vector<std::string> errors{};       // Commands with a different result.
  std::string unsupported;                 // The first feature that this device lacks; "" for none.
  std::vector<task::KernelFinding> findings{};  // Findings of a device in software.

  bool agrees() const { return differences.empty() && errors.empty(); }
};

class Pipeline final : public task::Evaluator {
 public:
  // Finds PyTorch, builds the missing parts in the cache, and starts the zygotes.
  static Result<std::unique_ptr<Pipeline>> create(const Options& options, const Progress& progress);
  ~Pipeline() override;

  // The kind of this machine, as text and to compare two machines: backend, architecture, versions
  // of PyTorch and policy.  A candidate that was prepared under one description can be measured
  // under an equal one.
  std::string description() const;

  // The number of devices on which candidates are timed at the same time; 1 on the CPU backend.
  size_t num_devices() const;

  // The number of candidates that should be judged at once: kJobsADevice for each device, but no
  // more than the cores suffice for; 1 on the CPU backend.
  int jobs_wanted() const;

  // True if verdicts of measured candidates include a race check.
  bool checks_races() const;

  // True if the pipeline prepares for a device that is not here (Options::architecture).
  bool only_prepares() const;

  // Ok, or the reason why this machine cannot judge: each zygote starts a child in its sandbox.
  Status check_machine();

  // Ok, or the fault of `task`: it does not parse, or lacks Model, get_inputs or get_init_inputs.
  Status check_task(const task::Task& task);

  // How well the task's comparison detects wrong candidates, and which wrong candidates pass with
  // weights as the task initialises them, without the disturbance of docs/correctness.md; or why
  // the task cannot be judged.
  struct Hygiene {
    task::TaskGrade grade;
    std::vector<std::string> as_initialised;
    std::string shape;  // "native", or "reduced" to fit the backend.
  };
  Result<std::variant<Hygiene, task::Unsupported>> grade_task(const task::Task& task);

  Preparation prepare(const task::Task& task, const task::Candidate& candidate);
  Preparation prepare(const task::Task& task, const task::Candidate& candidate,
                      const task::Correctness& correctness, std::optional<task::Dialect> dialect);
  // kInvalidInput for a candidate's dialect that the backend or the width of its warps excludes.
  Status can_judge(task::Dialect dialect) const;
  // Prepares a candidate of the caller's own, without inspection.  `recorded` is the recorder's
  // response for `module`, and the artifacts were compiled by this pipeline's toolchain.
  PreparedCandidate trusted(const task::Task& task, const task::Candidate& candidate,
                            std::string module, std::string recorded,
                            std::vector<compile::Artifact> artifacts) const;
  // kInvalidInput where the candidate was prepared for another kind of machine or under another
  // policy.
  Status can_measure(const PreparedCandidate& prepared) const;
  // REQUIRES: can_measure(prepared).
  task::Verdict measure(const PreparedCandidate& prepared);
  task::Verdict measure(const PreparedCandidate& prepared, const task::Correctness& correctness);
  // kInvalidInput where the recording's data is malformed, kUnsupported where this device cannot
  // run it.  REQUIRES: Options::is_portable.
  Result<Replayed> replay(const Recording& recording);
  task::Verdict evaluate(const task::Task& task, const task::Candidate& candidate) override;
  // The same with other settings of the comparison and another dialect than the pipeline's, like
  // the overloads of prepare() and measure().  REQUIRES: check(correctness) is ok, and
  // can_judge(dialect) if there is one.
  task::Verdict evaluate(const task::Task& task, const task::Candidate& candidate,
                         const task::Correctness& correctness,
                         std::optional<task::Dialect> dialect);

 private:
  struct State;
  explicit Pipeline(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Builds the missing parts that `create` would build, and nothing else.
Status set_up_machine(const Options& options, const Progress& progress);

}  // namespace mc::eval

#endif  // MC_EVAL_PIPELINE_H_
