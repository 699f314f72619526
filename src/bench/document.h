// SPDX-License-Identifier: Apache-2.0
//
// The document of a report: one JSON object with all figures of one or more runs.  The Python
// package `report` creates the page from it.
#ifndef MC_BENCH_DOCUMENT_H_
#define MC_BENCH_DOCUMENT_H_

#include <map>
#include <optional>
#include <span>
#include <string>

#include "bench/figures.h"

namespace mc::bench {

struct DocumentOptions {
  std::string title;
  std::string created;  // ISO 8601, UTC.
  std::string program;  // "musacoder 0.1.0"
  Missing missing = Missing::kFailed;
};

// The members are described in docs/report.schema.json.  If two runs of different stores have the
// same name, a number distinguishes them.
std::string document_json(std::span<const RunData> runs, const DocumentOptions& options);

// KernelBench's eval_results.json for each level of a run; the keys are the levels' numbers.  Each
// sample of a numbered task ("kernelbench:1/19") has an entry for its turn that passes, else for
// its last turn.  A sample that is not scored has no entry.  Times are in milliseconds.
std::map<std::string, std::string> kernelbench_results(const RunData& data);

// The SOL score: 1 / (1 + (t - t_sol) / (t_eager - t_sol)), which is 1 at the device's
// speed-of-light bound t_sol and 0.5 at the time of eager PyTorch (SOL-ExecBench, arXiv
// 2603.19173).  Empty if the verdict was not timed, or if eager PyTorch is not slower than the
// bound.
std::optional<double> sol_score(const task::Verdict& verdict);

}  // namespace mc::bench

#endif  // MC_BENCH_DOCUMENT_H_
