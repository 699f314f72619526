// SPDX-License-Identifier: Apache-2.0
//
// The end of `musacoder bench`: the figures of a run as a table for people, and as files.
#ifndef MC_CLI_BENCH_REPORT_H_
#define MC_CLI_BENCH_REPORT_H_

#include <ostream>
#include <string>

#include "bench/course.h"
#include "cli/bench_arguments.h"
#include "core/result.h"
#include "store/store.h"

namespace mc::cli {

// Prints the table to `out`, and writes answers.jsonl, verdicts.jsonl and summary.json of a run
// that is not of --also.  Returns the text of the summary.  kInvalidInput for a run without
// answers.
Result<std::string> report_bench(const BenchArguments& arguments, const store::Run& run,
                                 const bench::CourseEnd& end, std::ostream& out);

}  // namespace mc::cli

#endif  // MC_CLI_BENCH_REPORT_H_
