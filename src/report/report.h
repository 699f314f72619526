// SPDX-License-Identifier: Apache-2.0
//
// Views of many verdicts for users and programs: a table, a summary, JSON Lines, and the metrics of
// code generation.  Pure functions of values, without input, output or measurement.  Example:
//   std::vector<Judged> judged = {{verdict, 1.0, 2.5}, ...};
//   std::cout << table(judged, {}) << summary(judged);
//
// Verdicts that are no evidence about the candidate (`unsupported`, `infra`) appear in tables and
// counts and are left out of every metric.
#ifndef MC_REPORT_REPORT_H_
#define MC_REPORT_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "task/verdict.h"

namespace mc::report {

// A verdict and the values derived from it.
struct Judged {
  task::Verdict verdict;
  std::optional<double> reward;  // Empty where it is not scored.
  double seconds = 0;            // From the first stage to the verdict.
  std::string feedback{};        // The text for the next turn of a model.
};

enum class Colour { kNone, kOutcomes };

struct TableOptions {
  size_t columns_max = 120;  // The width of the terminal; only the last column shrinks.
  Colour colour = Colour::kNone;
};

// One line for each verdict: task, candidate, outcome, q, reward, seconds, and a phrase about the
// location and reason of the failure or the speed.  Text of the candidate is shown without control
// characters.
std::string table(std::span<const Judged> judged, const TableOptions& options);

// The reason and location of the failure, the decisive finding first, in one plain line of at most
// `bytes_max` bytes.  For a timed pass its time a call and its speed-ups with their 95 % confidence
// intervals, "12.3 us, 2.00x eager [1.90, 2.10], 1.02x torch.compile [0.97, 1.06] uncertain"; ""
// for a pass without times.  REQUIRES: bytes_max >= 3.
std::string phrase(const task::Verdict& verdict, size_t bytes_max);

// Share of trials passed: 1 for a pass, q for a wrong kernel, else empty.
std::optional<double> share_passed(const task::Outcome& outcome);

// A summary such as "7 candidates: 2 pass, 1 wrong, ...; correct 28.6 % of 7 scored; mean reward
// -0.21".  Further lines, where they apply: the speed-ups of timed candidates (the geometric means
// of the medians and of the ends of their intervals); the seconds that candidates waited, with a
// remedy for the longest wait; the sandbox protections that were missing for some verdict.
std::string summary(std::span<const Judged> judged);

// One line of JSON with the verdict (docs/verdict.md), the reward (null where not scored), the
// seconds and the feedback; ends in a newline.
std::string json_line(const Judged& judged);

// ---- Metrics ------------------------------------------------------------------------------------

// The unbiased estimate of the probability that one of k samples passes, from `num_passed` of
// `num`.  REQUIRES: 0 <= num_passed <= num and 1 <= k <= num.
double pass_at_k(int64_t num, int64_t num_passed, int64_t k);

struct Metrics {
  int64_t num_tasks = 0;    // Tasks with at least one scored sample.
  int64_t num_scored = 0;   // The number of scored samples.
  int64_t num_correct = 0;  // Samples that pass.
  double average = 0;       // Mean over tasks of the share of samples that pass: Avg@k, Pass@1.
};
Metrics metrics(std::span<const Judged> judged);

}  // namespace mc::report

#endif  // MC_REPORT_REPORT_H_
