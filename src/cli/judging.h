// SPDX-License-Identifier: Apache-2.0
//
// The common part of `eval` and of its two halves, `prepare` and `measure`: options, input and
// output.
#ifndef MC_CLI_JUDGING_H_
#define MC_CLI_JUDGING_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/progress.h"
#include "core/layout.h"
#include "core/result.h"
#include "eval/pipeline.h"
#include "report/report.h"
#include "reward/score.h"
#include "task/correctness.h"
#include "task/suite.h"

namespace mc::cli {

struct EvalArguments {
  std::string task;
  std::string suite;
  std::string entry_point;
  std::vector<std::string> candidates;
  std::vector<std::string> prepared;
  std::string backend = "auto";
  std::string out;
  std::string record;  // The file for the recording of the only verdict, or "".
  bool json = false;
  bool exit_code = false;
  bool feedback = false;
  bool stream = false;
  int jobs = 1;
  reward::ScoreOptions score;
  int feedback_tokens = 2000;
  eval::Options options;
};

struct Work {
  task::Task task;
  task::Candidate candidate;
};

// The parsed input: the work to judge, and the errors of invalid items.
struct LoadedWork {
  std::vector<Work> work;
  std::vector<Error> bad;  // Each error names its file and line, or its task.
};

// ---- Options, in groups of --help ---------------------------------------------------------------

inline constexpr const char* kCorrectnessGroup = "Correctness";
inline constexpr const char* kTimingGroup = "Timing (on a device)";
inline constexpr const char* kLimitsGroup = "Limits";

void add_candidates(CLI::App& command, EvalArguments& arguments);
void add_machine(CLI::App& command, EvalArguments& arguments);
void add_dialect(CLI::App& command, EvalArguments& arguments);
void add_architecture(CLI::App& command, EvalArguments& arguments);
void add_verdicts(CLI::App& command, EvalArguments& arguments);
void add_correctness(CLI::App& command, task::Correctness& correctness);
void add_no_shapes(CLI::App& command, task::Correctness& correctness);
void add_seed(CLI::App& command, EvalArguments& arguments);
void add_race_check(CLI::App& command, EvalArguments& arguments);
void add_timing(CLI::App& command, EvalArguments& arguments);
void add_compile_limits(CLI::App& command, EvalArguments& arguments);
void add_run_limits(CLI::App& command, EvalArguments& arguments);
void add_reward(CLI::App& command, EvalArguments& arguments);
void add_experiments(CLI::App& command, EvalArguments& arguments);

// Sets `arguments.options` from the other arguments.
Status resolve_options(EvalArguments& arguments, const CLI::App& command);

// ---- Work ---------------------------------------------------------------------------------------

task::Roots roots_of(const Layout& layout);
// The path of a suite for a value of --suite: a path, or `tasks` for the project's own tasks, or
// `kernelbench` for the copy in $MC_KERNELBENCH; "" is returned unchanged.
Result<std::filesystem::path> suite_path(const std::string& name, const Layout& layout);
// Loads a task like task::load_task; for an unknown name, the error suggests the nearest known
// name.
Result<task::Task> find_task(const std::string& spec, const task::Roots& roots);
// Loads all work, and prints a line for each invalid item.  kInvalidInput or kNotFound if --task or
// --suite is invalid.
Result<LoadedWork> load_work(const EvalArguments& arguments, const Layout& layout);
// Creates the pipeline; `bar` shows its long steps.
Result<std::unique_ptr<eval::Pipeline>> open_pipeline(const eval::Options& options,
                                                      ProgressBar& bar);
// Removes the work of invalid tasks, prints a line for each of these tasks, and adds the lines to
// given.bad.  An error means that the machine failed.
Status check_tasks(eval::Pipeline& pipeline, LoadedWork& given, int jobs);
// Prints one line for each error on standard error.
void report_bad(const std::vector<Error>& bad);
// The value of --jobs, or the number of threads that keeps the devices busy.
int jobs_of(const EvalArguments& arguments, const CLI::App& command,
            const eval::Pipeline& pipeline);
// Calls `f(i)` for each i < `count`, on `jobs` threads.
void for_each_index(size_t count, int jobs, const std::function<void(size_t)>& f);

// ---- Verdicts -----------------------------------------------------------------------------------

// The file --out, written while candidates are judged: <path>.part has a line for each verdict so
// far, so that an interrupted run loses none.  If a signal ends the run, the last line names the
// file.  A device or a pipe receives all verdicts at the end.
class VerdictFile {
 public:
  // If `path` is "", nothing is written.
  static Result<std::unique_ptr<VerdictFile>> create(const std::string& path);
  void add(const report::Judged& judged);  // Thread-safe.
  // Writes all verdicts in order, and removes the part file.
  Status finish(const std::vector<report::Judged>& judged);

 private:
  std::string path_;
  std::filesystem::path part_path_;  // "" if there is no part file.
  std::mutex mutex_;
  std::ofstream part_;  // Guarded by mutex_.
};

// A verdict with its reward, its feedback and the time since `start`.
report::Judged judged_since(std::chrono::steady_clock::time_point start, task::Verdict verdict,
                            const EvalArguments& arguments);

// Prints verdicts to standard output, in the form that --json and --feedback request.
void print(const std::vector<report::Judged>& judged, const EvalArguments& arguments);

// The program's exit code: kExitInput if some input was invalid; else, with --exit-code, from the
// verdicts.
int exit_code_of(const std::vector<Error>& bad, const std::vector<report::Judged>& judged,
                 const EvalArguments& arguments);

}  // namespace mc::cli

#endif  // MC_CLI_JUDGING_H_
