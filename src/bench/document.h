// SPDX-License-Identifier: Apache-2.0
//
// The document of a report: all that its page shows of one or more runs, as one JSON object with
// every figure in it.  The page is made from it by the Python package `report`.
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

// The members are described in python/report/document.py.  Two runs of the same name in different
// stores keep it; a number tells them apart.
std::string document_json(std::span<const RunData> runs, const DocumentOptions& options);

// KernelBench's eval_results.json for each level of a run; the keys are the levels' numbers.  A
// sample of a numbered task ("kernelbench:1/19") has an entry by its turn that passes, else by its
// last one; a sample that is not scored has none, as where KernelBench could not judge.  Times are
// milliseconds.
std::map<std::string, std::string> kernelbench_results(const RunData& data);

// The SOL score: 1 / (1 + (t - t_sol) / (t_eager - t_sol)), 1 at the bound of the device and 0.5 at
// the time of eager PyTorch (SOL-ExecBench, arXiv 2603.19173).  Empty for a verdict that was not
// timed, and where eager PyTorch is not slower than the bound.
std::optional<double> sol_score(const task::Verdict& verdict);

}  // namespace mc::bench

#endif  // MC_BENCH_DOCUMENT_H_
