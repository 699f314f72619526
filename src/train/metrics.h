// SPDX-License-Identifier: Apache-2.0
//
// The report of a run about each step: a line of JSON in RUN/metrics.jsonl, which TensorBoard,
// wandb and trackio read by three lines of Python (docs/learn.md).
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
  int64_t step = 0;      // From 1.
  double loss = 0;       // Nats a learned token, before the step.
  double grad_norm = 0;  // Before it was limited.
  double lr = 0;
  int64_t tokens = 0;  // The tokens of all steps so far, read and learned ones.
  int64_t epoch = 0;
  double elapsed_s = 0;     // The time of all parts of the run.
  double tokens_per_s = 0;  // The rate of this step.
};

class MetricsFile {
 public:
  // Goes on after step `last_step`: lines of later steps, which a run that was killed left, are
  // removed.
  static Result<MetricsFile> open(const std::filesystem::path& run, int64_t last_step);
  Status add(const StepMetrics& metrics);
  // {"step": …, name: number, …}
  Status add(int64_t step, std::span<const Scalar> scalars);

 private:
  explicit MetricsFile(Fd lines) : lines_(std::move(lines)) {}
  Status append(const std::string& line);

  Fd lines_;
};

}  // namespace mc::train

#endif  // MC_TRAIN_METRICS_H_
