// SPDX-License-Identifier: Apache-2.0
//
// BatchVerifier: verifies tasks and their kernels many at a time.
//
// A verdict on a candidate that MooreEval does not trust costs about a second; the forge's own
// kernels are not hostile.  So some sixteen and more of them are compiled as one unit, each in a
// namespace of its own, for the same emulator; one Python process per BatchVerifier draws the same
// trials and compares as MooreEval's judge does; each kernel runs in a fork.  What is left out:
// sandbox, legality by text, and processes apart for judge and candidate process.  A unit that does
// not compile is compiled kernel by kernel with MooreEval's own toolchain.
//
//   MC_TRY(auto bulk, BatchVerifier::create(progress), "forge");
//   MC_TRY(auto results, bulk->verify(works), "verify");
#ifndef MC_FORGE_BULK_H_
#define MC_FORGE_BULK_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "task/verdict.h"

namespace mc::forge {

// One kernel to be judged: `module` holds `cuda` as the only source of its extension.
struct Attempt {
  std::string module;
  std::string cuda;
};

struct TaskWork {
  std::string source;  // KernelBench format.
  std::string probe;  // JSON: sizes, inputs, parameters and output of the interpreter; "" for none.
  std::vector<std::string> tests;  // Unit tests, each like `probe` (unit_tests.h).
  uint64_t seed = 0;               // The judge's seed.
  bool explains = true;  // The judge looks for the cause of a wrong output, a third of its time.
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
  static Result<std::unique_ptr<BatchVerifier>> create(const Progress& progress);
  ~BatchVerifier();

  Result<std::vector<TaskResult>> verify(const std::vector<TaskWork>& works);

 private:
  struct State;
  explicit BatchVerifier(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace mc::forge

#endif  // MC_FORGE_BULK_H_
