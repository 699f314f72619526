// SPDX-License-Identifier: Apache-2.0
//
// The document of a report: all that its page shows of one or more runs, as one JSON object with
// every figure in it.  The page is made from it by the Python package `report`.
#ifndef MC_BENCH_DOCUMENT_H_
#define MC_BENCH_DOCUMENT_H_

#include <span>
#include <string>

#include "bench/figures.h"

namespace mc::bench {

struct DocumentOptions {
  std::string title;
  std::string created;  // ISO 8601, UTC.
  std::string program;  // "musacoder 0.1.0"
};

// The members are described in docs/bench.md.  Two runs of the same name in different stores keep
// it; a number tells them apart.
std::string document_json(std::span<const RunData> runs, const DocumentOptions& options);

// The SOL score: 1 / (1 + (t - t_sol) / (t_eager - t_sol)), 1 at the bound of the device and 0.5 at
// the time of eager PyTorch (SOL-ExecBench, arXiv 2603.19173).  Empty for a verdict that was not
// timed, and where eager PyTorch is not slower than the bound.
std::optional<double> sol_score(const task::Verdict& verdict);

}  // namespace mc::bench

#endif  // MC_BENCH_DOCUMENT_H_
