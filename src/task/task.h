// SPDX-License-Identifier: Apache-2.0
//
// Task and Candidate: what MooreEval is asked.
//
// A task is a KernelBench-style reference program: Python text that defines `Model`, `get_inputs`
// and `get_init_inputs`.  A candidate is what a model wrote for it: a Python module that defines
// `ModelNew` and native source.  Both are plain text here; judging them is the work of the layers
// above.
#ifndef MC_TASK_TASK_H_
#define MC_TASK_TASK_H_

#include <cstddef>
#include <string>

namespace mc::task {

inline constexpr size_t kTaskBytesMax = 1 << 20;
inline constexpr size_t kAnswerBytesMax = 16 << 20;    // A model's raw answer.
inline constexpr size_t kCandidateBytesMax = 1 << 20;  // The module extracted from it.

struct Task {
  std::string id;    // "reduction/row_sum" or "kernelbench:1/19".
  std::string name;  // For people.
  std::string code;
};

struct Candidate {
  std::string id;      // The origin: a path, or "task#sample".
  std::string answer;  // Raw answer or module text.
};

enum class Backend { kCpu, kCuda, kMusa };
const char* to_string(Backend backend);

// The languages that kernels may be asked for in.
inline constexpr const char* kAnyLanguage = "any";
inline constexpr const char* kNative = "cuda";  // MUSA's sources, too.
inline constexpr const char* kTriton = "triton";

// The platform that a candidate is written for.  A MUSA candidate is judged as its port to CUDA.
enum class Dialect { kCuda, kMusa };
const char* to_string(Dialect dialect);
inline constexpr Dialect kDialects[] = {Dialect::kCuda, Dialect::kMusa};

}  // namespace mc::task

#endif  // MC_TASK_TASK_H_
