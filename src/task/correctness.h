// SPDX-License-Identifier: Apache-2.0
//
// Correctness: the settings for comparing a candidate's outputs with the reference's
// (docs/correctness.md).
//
// One struct serves the options of the command line, the requests to a service, the requests to a
// judge, and the protocol that a verdict records.  Other values of a member change the meaning of
// verdicts; all figures in docs/ use the defaults.
#ifndef MC_TASK_CORRECTNESS_H_
#define MC_TASK_CORRECTNESS_H_

#include <string>
#include <vector>

#include "core/result.h"

namespace mc::task {

inline constexpr int kTrialsMax = 100;

struct Correctness {
  int trials = 5;  // The number at the main shape, from 1 to kTrialsMax.
  // Values of the inputs: "varied" (the task's own and others that the reference accepts), "native"
  // (the task's own alone), or "verified" (the task's own times 1, 3, 0.01 and -1).
  std::string inputs = "varied";
  bool shapes = true;            // True if other sizes than the main one are tried, too.
  bool require_general = false;  // True: they count for every task.
  std::string mode = "train";    // "train": as the constructor leaves the model; or "eval".
  // The dtype of inputs and model: "task" (its own), "fp32", "fp16", "bf16".
  std::string precision = "task";
  double tolerance_fp32 = 1e-4;
  double tolerance_half = 1e-2;
  bool operator==(const Correctness&) const = default;
};

// The possible values of these members, the default first.
const std::vector<std::string>& input_sets();
const std::vector<std::string>& modes();
const std::vector<std::string>& precisions();

// The status is ok, or kInvalidInput, which names the member and its possible values.
Status check(const Correctness& correctness);

// A text that is equal for equal values, for keys.
std::string to_string(const Correctness& correctness);

}  // namespace mc::task

#endif  // MC_TASK_CORRECTNESS_H_
