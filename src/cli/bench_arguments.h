// SPDX-License-Identifier: Apache-2.0
//
// The options of `musacoder bench`, and what follows from them alone.
#ifndef MC_CLI_BENCH_ARGUMENTS_H_
#define MC_CLI_BENCH_ARGUMENTS_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench/course.h"
#include "bench/figures.h"
#include "cli/judging.h"
#include "cli/source.h"
#include "core/result.h"
#include "sample/suite.h"

namespace mc::cli {

struct BenchArguments : SourceArguments {
  std::string answers;
  std::string runs;
  std::string suite;
  std::string out;
  std::string run;
  std::string against;
  std::vector<std::string> also;
  std::vector<int> levels;
  std::vector<std::string> problems;
  std::vector<std::string> families;
  size_t limit = 0;
  std::string system;
  std::string prompt_template;
  std::vector<double> prices;
  bench::Missing missing = bench::Missing::kFailed;
  bench::CourseOptions course;
  // Options of judging that were given, by their names.
  std::map<std::string, std::vector<std::string>> given;
  std::string protocol;  // That of --also; "" for the run itself.
  bool details = false;
  bool json = false;
  EvalArguments judging;
};

void add_bench_options(CLI::App& command, BenchArguments& arguments);

// Completes what was parsed.  kInvalidInput where options cannot be used, or not together.
Status settle_bench(BenchArguments& arguments, const CLI::App& command);

// The arguments of the run of --also mode=eval,policy=kernelbench.  Options of judging that the
// main run has and the protocol does not name are the same.
Result<BenchArguments> other_protocol(const BenchArguments& arguments, const std::string& protocol);

// The run's name in the store: where the user gave none, that of the model, file or folder.
std::string name_of(const BenchArguments& arguments);

// All that the figures depend on, as one line of JSON.
std::string settings_of(const BenchArguments& arguments, const std::vector<sample::Item>& items);

}  // namespace mc::cli

#endif  // MC_CLI_BENCH_ARGUMENTS_H_
