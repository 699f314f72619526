// SPDX-License-Identifier: Apache-2.0
//
// Task and Candidate: the input of MooreEval.
//
// A task is a KernelBench-style reference program: Python text that defines `Model`, `get_inputs`
// and `get_init_inputs`.  A candidate is a model's solution: a Python module that defines
// `ModelNew` and native source.  Both are plain text here; the layers above judge them.
#ifndef MC_TASK_TASK_H_
#define MC_TASK_TASK_H_

#include <cstddef>
#include <string>

namespace mc::task {

inline constexpr size_t kTaskBytesMax = 1 << 20;
inline constexpr size_t kAnswerBytesMax = 16 << 20;    // A model's raw answer.
inline constexpr size_t kCandidateBytesMax = 1 << 20;  // The module extracted from the answer.

struct Task {
  std::string id;    // "reduction/row_sum" or "kernelbench:1/19".
  std::string name;  // A name for users.
  std::string code;
};

struct Candidate {
  std::string id;      // The origin: a path, or "task#sample".
  std::string answer;  // Raw answer or module text.
};

enum class Backend { kCpu, kCuda, kMusa };
const char* to_string(Backend backend);

// The values of the option for the language of kernels.
inline constexpr const char* kAnyLanguage = "any";
inline constexpr const char* kNative = "cuda";  // Includes MUSA's sources.
inline constexpr const char* kTriton = "triton";

// The platform that a candidate is written for.  A MUSA candidate is judged as its port to CUDA.
enum class Dialect { kCuda, kMusa };
const char* to_string(Dialect dialect);
inline constexpr Dialect kDialects[] = {Dialect::kCuda, Dialect::kMusa};

}  // namespace mc::task

#endif  // MC_TASK_TASK_H_
