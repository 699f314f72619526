// SPDX-License-Identifier: Apache-2.0
//
// The metrics of a run, a JSON line for each step in RUN/metrics.jsonl.  Three lines of Python pass
// them to TensorBoard, wandb or trackio (docs/learn.md).
#ifndef MC_TRAIN_METRICS_H_
#define MC_TRAIN_METRICS_H_

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

#include "core/fd.h"
#include "core/result.h"

namespace mc::train {

using Scalar = std::pair<std::string_view, double>;

struct StepMetrics {
  int64_t step = 0;      // The number of the step, from 1.
  double loss = 0;       // In nats for each learned token, before the step.
  double grad_norm = 0;  // The norm before clipping.
  double lr = 0;
  int64_t tokens = 0;  // The tokens of all steps so far, both learned tokens and context.
  int64_t epoch = 0;
  double elapsed_s = 0;     // The time since the start, summed over all resumed parts of the run.
  double tokens_per_s = 0;  // The rate of this step.
};

class MetricsFile {
 public:
  // Opens the file to continue after step `last_step`.  Lines of later steps, left by a killed run,
  // are removed.
  static Result<MetricsFile> open(const std::filesystem::path& run, int64_t last_step);
  Status add(const StepMetrics& metrics);
  // Appends {"step": …, name: number, …}.
  Status add(int64_t step, std::span<const Scalar> scalars);

 private:
  explicit MetricsFile(Fd lines) : lines_(std::move(lines)) {}
  Status append(const std::string& line);

  Fd lines_;
};

}  // namespace mc::train

#endif  // MC_TRAIN_METRICS_H_
