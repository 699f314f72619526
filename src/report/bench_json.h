// SPDX-License-Identifier: Apache-2.0
//
// The file summary.json of a benchmark: the figures of bench.h as JSON, for programs.
#ifndef MC_REPORT_BENCH_JSON_H_
#define MC_REPORT_BENCH_JSON_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "report/bench.h"
#include "report/report.h"

namespace mc::report {

struct BenchReport {
  std::span<const BenchRow> rows;
  std::span<const Judged> judged;
  int64_t num_wanted = 0;   // The wanted number of samples.
  int64_t num_judged = 0;   // Samples with all their answers and verdicts.
  int64_t num_missing = 0;  // Wanted samples without an answer.
  int64_t num_cut = 0;      // Answers that ended at the token limit.
  std::optional<Paired> paired;
};

// Only the figures, as an object.
std::string figures_json(const BenchFigures& figures);

// The report, indented; ends in a newline.  A figure is {"value", "low", "high", "tasks"}, or null
// where it is not known.
std::string bench_json(const BenchReport& report);

}  // namespace mc::report

#endif  // MC_REPORT_BENCH_JSON_H_
