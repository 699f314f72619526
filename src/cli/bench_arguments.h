// SPDX-License-Identifier: Apache-2.0
//
// The options of `musacoder bench`, and values that depend on the options alone.
#ifndef MC_CLI_BENCH_ARGUMENTS_H_
#define MC_CLI_BENCH_ARGUMENTS_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench/figures.h"
#include "bench/sampling_loop.h"
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
  bench::SamplingOptions course;
  // The judging options on the command line, by name.
  std::map<std::string, std::vector<std::string>> given;
  std::string protocol;  // The protocol of --also; "" for the main run.
  bool details = false;
  bool json = false;
  EvalArguments judging;
};

void add_bench_options(CLI::App& command, BenchArguments& arguments);

// Completes the parsed options.  kInvalidInput for invalid options or combinations.
Status resolve_bench_options(BenchArguments& arguments, const CLI::App& command);

// The arguments of a run of --also, for example mode=eval,policy=kernelbench.  Judging options that
// the protocol does not name are those of the main run.
Result<BenchArguments> other_protocol(const BenchArguments& arguments, const std::string& protocol);

// The run's name in the store; by default the name of the model, file or folder.
std::string name_of(const BenchArguments& arguments);

// All settings that influence the figures, as one line of JSON.
std::string settings_of(const BenchArguments& arguments, const std::vector<sample::Item>& items);

}  // namespace mc::cli

#endif  // MC_CLI_BENCH_ARGUMENTS_H_
