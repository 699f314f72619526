// SPDX-License-Identifier: Apache-2.0
//
// BatchVerifier: verifies tasks and their kernels many at a time.
//
// A candidate that MooreEval does not trust is inspected, recorded and compiled alone, which takes
// seconds; the forge's own kernels are not hostile.  So those of several tasks are compiled as one
// unit, each in a namespace of its own, and each goes to MooreEval as one that was prepared
// (eval/prepared.h): trials, comparison, findings and sandbox are those of every candidate.
// A kernel whose unit does not compile is prepared by MooreEval, too.
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

// One kernel to be judged: the module of `candidate` holds `cuda` as the only source of its
// extension, of which it calls the host function.
struct Attempt {
  task::Candidate candidate;
  std::string module;
  std::string cuda;
};

struct TaskWork {
  task::Task task;
  std::string probe;  // JSON: sizes, inputs, parameters and output of the interpreter; "" for none.
  std::vector<std::string> tests;  // Unit tests, each like `probe` (unit_tests.h).
  uint64_t seed = 0;               // The gate's seed.
  std::vector<Attempt> attempts;
  std::vector<Attempt> may_not_compile;  // Each is compiled on its own.
};

struct TaskResult {
  std::vector<std::string> gate;  // Why the task is none; empty when it is one.
  std::vector<bool> tests;        // For each unit test: the reference passes it.
  // The outcomes of attempts, then those of may_not_compile; none where the gate failed.
  std::vector<task::Outcome> outcomes;
};

class BatchVerifier {
 public:
  using Progress = std::function<void(std::string_view step)>;
  // `pipeline` judges by the backend cpu, and outlives this.
  static Result<std::unique_ptr<BatchVerifier>> create(eval::Pipeline& pipeline,
                                                       const Progress& progress);
  ~BatchVerifier();

  // kUnavailable where the pipeline cannot judge one of them.
  Result<std::vector<TaskResult>> verify(const std::vector<TaskWork>& works);

 private:
  struct State;
  explicit BatchVerifier(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A verdict's outcome, without the namespaces of a unit in the names of kernels.
task::Outcome without_namespaces(const task::Verdict& verdict);

}  // namespace mc::forge

#endif  // MC_FORGE_BATCH_H_
