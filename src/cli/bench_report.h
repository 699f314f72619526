// SPDX-License-Identifier: Apache-2.0
//
// The report at the end of `musacoder bench`: the figures of a run as a table and as files.  Also
// the option --missing, which `report` has too.
#ifndef MC_CLI_BENCH_REPORT_H_
#define MC_CLI_BENCH_REPORT_H_

#include <ostream>
#include <string>

#include <CLI/CLI.hpp>

#include "bench/figures.h"
#include "bench/sampling_loop.h"
#include "cli/bench_arguments.h"
#include "core/result.h"
#include "store/store.h"

namespace mc::cli {

// The option --missing.
void add_missing(CLI::App& command, bench::Missing& missing);

// Prints the table to `out`.  Unless the run is one of --also, writes answers.jsonl, verdicts.jsonl
// and summary.json.  Returns the text of the summary.  kInvalidInput for a run without answers.
Result<std::string> report_bench(const BenchArguments& arguments, const store::Run& run,
                                 const bench::SamplingEnd& end, std::ostream& out);

}  // namespace mc::cli

#endif  // MC_CLI_BENCH_REPORT_H_
