// SPDX-License-Identifier: Apache-2.0
//
// The figures of a benchmark, computed from the verdicts on its answers.  Pure functions of values.
//
// A *sample* is one attempt of a model at a task; it has one or several turns, each an answer with
// its own verdict.  A sample passes when one of its turns does.  Verdicts that are no evidence
// about the answer (`unsupported`, `infra`) are counted and left out of every figure, numerator and
// denominator.  A sample without a verdict counts as failed where the caller passes it as missing.
//
// Each figure is a mean over tasks of a value of 0 to 1 for each task, so tasks have equal weight
// whatever their number of samples.  With one sample for each task these are KernelBench's own
// Pass@k and fast_p.  Example:
//   const BenchFigures all = bench_figures(attempts, {.ks = {1, 4}});
//   use(all.pass_at.at(4).value, all.pass_at.at(4).interval);
#ifndef MC_REPORT_BENCH_H_
#define MC_REPORT_BENCH_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "task/verdict.h"

namespace mc::report {

// ---- Intervals ----------------------------------------------------------------------------------

struct Interval {
  double low = 0;
  double high = 1;
  bool operator==(const Interval&) const = default;
};

// The 95 % score interval of a proportion (E.  B.  Wilson, 1927): it always has a positive width
// and is within [0, 1].  REQUIRES: 0 <= num_passed <= num and num > 0.
Interval wilson(int64_t num_passed, int64_t num);

// The 95 % percentile bootstrap of the mean: resamples `values` with replacement, 2000 times,
// always with the same pseudo-random numbers.  REQUIRES: values are not empty.
Interval bootstrap_mean(std::span<const double> values);

// A mean over tasks.  Where every task's value is 0 or 1 it is a proportion of tasks and has
// Wilson's interval, else the bootstrap's over tasks.  A single task with another value determines
// no interval: [0, 1].
struct Figure {
  double value = 0;
  Interval interval;
  int64_t num_tasks = 0;
  bool operator==(const Figure&) const = default;
};
// The figure; empty where there are no values.
std::optional<Figure> figure_of(std::span<const double> task_values);

// ---- One run ------------------------------------------------------------------------------------

// The relevant facts of one verdict.
struct Attempt {
  enum class Outcome { kPassed, kFailed, kUnsupported, kInfra, kMissing };
  std::string task;
  int64_t sample = 0;
  int64_t turn = 0;
  Outcome outcome = Outcome::kInfra;
  std::optional<task::Estimate> speedup;       // Over eager, for a timed pass.
  std::optional<task::Estimate> over_compile;  // Over torch.compile, where it was also timed.
};
Attempt attempt_of(const task::Verdict& verdict, int64_t sample, int64_t turn);

// The speed-ups p of fast_p: the share of samples that pass and are more than p times as fast as
// eager.  A pass that was not timed counts for p = 0 only.
inline constexpr double kFastP[] = {0, 1, 1.5, 2};
inline constexpr double kFaster = 1.1;  // Faster Rate is fast_1.1 (MusaCoder, section 5).

struct BenchOptions {
  std::vector<int64_t> ks = {1};  // The values of k in Pass@k; each >= 1.
};

struct BenchFigures {
  int64_t num_tasks = 0;       // Tasks with at least one attempt.
  int64_t num_attempts = 0;    // All turns with a verdict.
  int64_t num_missing = 0;     // Samples without a verdict, which count as failed.
  int64_t num_not_scored = 0;  // The number of unsupported and infra attempts.
  // The unsupported ones by task: for a wrong answer, being unsupported is an advantage.
  std::map<std::string, int64_t> unsupported;
  int64_t num_samples = 0;  // Samples with a scored turn, and missing ones.
  int64_t num_passed = 0;   // Samples that pass.
  // Absent where no task has a scored sample.
  std::optional<Figure> average;      // Avg@k: mean share of samples that pass.
  std::optional<Figure> first_turn;   // The same for turn 0 only.
  std::optional<Figure> best_turn;    // The share of tasks with a passing turn.
  std::map<int64_t, Figure> pass_at;  // The mean over tasks with at least k scored samples.
  // The figures fast_p by p; p > 0 only where every pass was timed.
  std::map<double, Figure> fast;
  std::optional<Figure> faster_rate;  // Present where every pass was timed.
  // The Faster Rate over torch.compile, where there is a pass and every pass was timed against it.
  std::optional<Figure> faster_than_compiled;
  // The number of samples that count in fast_p by the median of their speed-up although their
  // interval contains p; for each p > 0 of fast_p, and for kFaster.
  std::map<double, int64_t> uncertain;
};
BenchFigures bench_figures(std::span<const Attempt> attempts, const BenchOptions& options);

// ---- Two runs -----------------------------------------------------------------------------------

// The comparison on the tasks for which both runs have a scored sample: the mean share of samples
// that pass, b minus a.
struct Paired {
  int64_t num_tasks = 0;
  int64_t num_better = 0;  // Tasks in which b passes more often.
  int64_t num_worse = 0;
  double a = 0;
  double b = 0;
  double difference = 0;
  Interval interval;  // The interval of the difference, by the bootstrap over tasks.
};
// The comparison; empty where the runs share no task.
std::optional<Paired> paired_difference(std::span<const Attempt> a, std::span<const Attempt> b);

// ---- For users ----------------------------------------------------------------------------------

struct BenchRow {
  std::string name;  // "all", "level 1", "family softmax".
  BenchFigures figures;
};
// One line for each row: tasks, answers, unscored and missing ones, Pass@k with intervals; fast_p
// and Faster Rate (also over torch.compile) where something was timed, with the number of uncertain
// samples; the first turn where there are several.
std::string bench_table(std::span<const BenchRow> rows);

// "71.7 % [59.2, 81.5]".
std::string percent(const Figure& figure);

}  // namespace mc::report

#endif  // MC_REPORT_BENCH_H_
