// SPDX-License-Identifier: Apache-2.0
//
// The report of a run about each step: a line of JSON in RUN/metrics.jsonl, and the same numbers in
// an event file for TensorBoard beside it.
#ifndef MC_TRAIN_METRICS_H_
#define MC_TRAIN_METRICS_H_

#include <cstdint>
#include <filesystem>
#include <span>

#include "core/fd.h"
#include "core/result.h"
#include "train/events.h"

namespace mc::train {

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

class MetricsFiles {
 public:
  // Goes on after step `last_step`: lines of later steps, which a run that was killed left, are
  // removed.
  static Result<MetricsFiles> open(const std::filesystem::path& run, int64_t last_step);
  Status add(const StepMetrics& metrics);
  // {"step": …, name: number, …}; the event file has the same names.
  Status add(int64_t step, std::span<const Scalar> scalars);

 private:
  MetricsFiles(Fd lines, Fd events) : lines_(std::move(lines)), events_(std::move(events)) {}
  Fd lines_;
  Fd events_;
};

}  // namespace mc::train

#endif  // MC_TRAIN_METRICS_H_
