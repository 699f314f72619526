// SPDX-License-Identifier: Apache-2.0
//
// The two halves of `eval`: `prepare` needs only CPUs and writes a file for each candidate to be
// measured; `measure` reads such files, here or on another machine.
#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/judging.h"
#include "cli/numbers.h"
#include "cli/progress.h"
#include "core/file.h"
#include "core/layout.h"
#include "eval/pipeline.h"
#include "eval/prepared.h"

namespace mc::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Creates the directory.  A directory with files of another run is rejected, because they would be
// measured together with those of this run.
Status make_directory(const std::string& path) {
  std::error_code failure;
  fs::create_directories(path, failure);
  const fs::directory_iterator entries(path, failure);
  if (failure) {
    return invalid("cannot make " + path + ": " + failure.message());
  }
  for (const fs::directory_entry& entry : entries) {
    if (entry.path().extension() == ".prepared") {
      return invalid(
          fmt::format("{0} has prepared candidates of another run: remove them "
                      "(rm {0}/*.prepared), or name another directory",
                      path));
    }
  }
  return ok();
}

// A name such as "DIR/00003.prepared", with the index of the candidate in the input, so that names
// are unique.
fs::path file_of(const std::string& directory, size_t index) {
  return fs::path(directory) / fmt::format("{:05}.prepared", index);
}

Result<int> run_prepare(EvalArguments& arguments, const CLI::App& command) {
  MC_TRY_VOID(resolve_options(arguments, command), "prepare");
  MC_TRY(const Layout layout, find_layout(), "prepare");
  auto loaded = load_work(arguments, layout);
  if (!loaded) return loaded.error();
  LoadedWork& given = *loaded;
  if (given.work.empty()) return kExitInput;
  MC_TRY_VOID(make_directory(arguments.out), "--out");
  ProgressBar bar(given.work.size());
  MC_TRY(auto pipeline, open_pipeline(arguments.options, bar), "prepare");
  MC_TRY_VOID(check_tasks(*pipeline, given, arguments.jobs), "prepare");
  const std::vector<Work>& work = given.work;
  std::vector<std::optional<report::Judged>> decided(work.size());
  std::vector<Status> written(work.size(), ok());
  for_each_index(work.size(), arguments.jobs, [&](size_t i) {
    const auto start = Clock::now();
    eval::Preparation preparation = pipeline->prepare(work[i].task, work[i].candidate);
    if (auto* verdict = std::get_if<task::Verdict>(&preparation)) {
      decided[i] = judged_since(start, std::move(*verdict), arguments);
    } else {
      auto bytes = eval::to_bytes(std::get<eval::PreparedCandidate>(preparation));
      written[i] =
          bytes ? write_file_atomically(file_of(arguments.out, i), *bytes) : Status(bytes.error());
    }
    bar.advance(work[i].candidate.id);
  });
  bar.finish();
  for (const Status& status : written) MC_TRY_VOID(status, "--out");
  std::vector<report::Judged> verdicts;
  for (auto& one : decided) {
    if (one) verdicts.push_back(std::move(*one));
  }
  if (!verdicts.empty() || arguments.json) print(verdicts, arguments);
  std::cerr << fmt::format("musacoder: {} to be measured, in {}; {} decided\n",
                           work.size() - verdicts.size(), arguments.out, verdicts.size());
  return exit_code_of(given.bad, verdicts, arguments);
}

Result<eval::PreparedCandidate> load_prepared(const std::string& path) {
  MC_TRY(const std::string bytes, read_file(path, eval::kPreparedBytesMax), path);
  MC_TRY(eval::PreparedCandidate prepared,
         eval::prepared_from_bytes(bytes, cache_directory() / "prepared"), path);
  return prepared;
}

Result<int> run_measure(EvalArguments& arguments, const CLI::App& command) {
  MC_TRY_VOID(resolve_options(arguments, command), "measure");
  MC_TRY_VOID(prepare_cache_directory(), "measure");
  std::vector<std::pair<std::string, eval::PreparedCandidate>> loaded;
  std::vector<Error> bad;
  for (const std::string& path : arguments.prepared) {
    auto one = load_prepared(path);
    if (one) {
      loaded.emplace_back(path, std::move(*one));
    } else {
      bad.push_back(one.error());
    }
  }
  report_bad(bad);
  if (loaded.empty()) return kExitInput;
  MC_TRY(const auto results, VerdictFile::create(arguments.out), "measure");
  ProgressBar bar(loaded.size());
  MC_TRY(auto pipeline, open_pipeline(arguments.options, bar), "measure");
  std::vector<Error> foreign;
  std::vector<eval::PreparedCandidate> prepared;
  for (auto& [path, one] : loaded) {
    if (const Status can = pipeline->can_measure(one); !can) {
      foreign.push_back({can.error().code, path + ": " + can.error().message});
    } else {
      prepared.push_back(std::move(one));
    }
  }
  report_bad(foreign);
  bad.insert(bad.end(), foreign.begin(), foreign.end());
  if (prepared.empty()) return kExitInput;
  std::vector<report::Judged> judged(prepared.size());
  for_each_index(prepared.size(), jobs_of(arguments, command, *pipeline), [&](size_t i) {
    const auto start = Clock::now();
    judged[i] = judged_since(start, pipeline->measure(prepared[i]), arguments);
    results->add(judged[i]);
    bar.advance(prepared[i].candidate.id);
  });
  bar.finish();
  MC_TRY_VOID(results->finish(judged), "measure");
  print(judged, arguments);
  return exit_code_of(bad, judged, arguments);
}

}  // namespace

void add_prepare(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<EvalArguments>();
  CLI::App* command = app.add_subcommand(
      "prepare", "The first half of eval: check and compile candidates, without a device");
  add_candidates(*command, *arguments);
  command->get_option("--candidate")->required();
  command->add_option("--out,-o", arguments->out, "Directory for what is to be measured")
      ->required()
      ->check(kOutputFolder);
  add_machine(*command, *arguments);
  add_dialect(*command, *arguments);
  add_architecture(*command, *arguments);
  command->add_flag("--json", arguments->json, "Print the verdicts of the others as JSON Lines");
  command->add_flag("--feedback", arguments->feedback, "Print the feedback for these");
  add_no_shapes(*command, arguments->options.correctness);
  add_compile_limits(*command, *arguments);
  add_reward(*command, *arguments);
  add_experiments(*command, *arguments);
  command->footer(
      "Example:\n"
      "  musacoder prepare answers.jsonl --architecture 90 --out prepared");
  command->callback(
      [arguments, command, &exit_code] { exit_code = code_of(run_prepare(*arguments, *command)); });
}

void add_measure(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<EvalArguments>();
  CLI::App* command =
      app.add_subcommand("measure", "The second half of eval: judge what prepare wrote");
  command->add_option("file", arguments->prepared, "What prepare wrote")->required();
  add_machine(*command, *arguments);
  add_dialect(*command, *arguments);
  add_verdicts(*command, *arguments);
  add_correctness(*command, arguments->options.correctness);
  add_race_check(*command, *arguments);
  add_timing(*command, *arguments);
  add_run_limits(*command, *arguments);
  add_reward(*command, *arguments);
  add_experiments(*command, *arguments);
  command->footer(
      "Example:\n"
      "  musacoder measure prepared/*.prepared --out verdicts.jsonl");
  command->callback(
      [arguments, command, &exit_code] { exit_code = code_of(run_measure(*arguments, *command)); });
}

}  // namespace mc::cli
