// SPDX-License-Identifier: Apache-2.0
//
// BatchVerifier: verifies many tasks and their kernels at a time.
//
// MooreEval inspects, records and compiles an untrusted candidate separately, which takes seconds.
// The forge's own kernels are not hostile.  So the kernels of several tasks are compiled as one
// unit, each in its own namespace, and MooreEval receives each as a prepared candidate
// (eval/prepared.h): trials, comparison, findings and sandbox are those of every candidate.  If a
// unit does not compile, MooreEval also prepares its kernels.
//
//   MC_TRY(auto verifier, BatchVerifier::create(pipeline, progress), "forge");
//   MC_TRY(auto results, verifier->verify(works), "verify");
#ifndef MC_FORGE_BATCH_H_
#define MC_FORGE_BATCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "eval/pipeline.h"
#include "task/task.h"
#include "task/verdict.h"

namespace mc::forge {

// One kernel to be verified: the module of `candidate` has `cuda` as its extension's only source,
// and calls its host function.
struct Attempt {
  task::Candidate candidate;
  std::string module;
  std::string cuda;
};

struct TaskWork {
  task::Task task;
  std::string probe;  // The interpreter's sizes, inputs, parameters and output as JSON, or "".
  std::vector<std::string> tests;  // Unit tests, each like `probe` (unit_tests.h).
  uint64_t seed = 0;               // The seed of the gate, which checks the task itself.
  std::vector<Attempt> attempts;
  std::vector<Attempt> may_not_compile;  // Attempts that are compiled separately.
};

struct TaskResult {
  std::vector<std::string> gate;  // The reasons why the task is invalid; empty for a valid task.
  std::vector<bool> tests;        // For each unit test, true if the reference passes it.
  // The outcomes of `attempts`, then those of `may_not_compile`; empty if the gate rejected the
  // task.
  std::vector<task::Outcome> outcomes;
};

// Verifies all works, as BatchVerifier::verify() does.
using Verify = std::function<Result<std::vector<TaskResult>>(const std::vector<TaskWork>& works)>;

class BatchVerifier {
 public:
  using Progress = std::function<void(std::string_view step)>;
  // `pipeline` uses the backend cpu, and must outlive this object.
  static Result<std::unique_ptr<BatchVerifier>> create(eval::Pipeline& pipeline,
                                                       const Progress& progress);
  ~BatchVerifier();

  // Verifies all works.  kUnavailable if the pipeline cannot judge one of them.
  Result<std::vector<TaskResult>> verify(const std::vector<TaskWork>& works);

 private:
  struct State;
  explicit BatchVerifier(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A verdict's outcome, with the unit's namespaces removed from the names of kernels.
task::Outcome without_namespaces(const task::Verdict& verdict);

}  // namespace mc::forge

#endif  // MC_FORGE_BATCH_H_
