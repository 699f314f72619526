// SPDX-License-Identifier: Apache-2.0
//
// The common part of `eval` and of its two halves, `prepare` and `measure`: their options, what
// they read and what they write.
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
  std::string dialect = to_string(task::Dialect::kCuda);
  std::string out;
  std::string record;  // "" or the file for the recording of the one verdict.
  bool json = false;
  bool exit_code = false;
  bool feedback = false;
  bool stream = false;
  bool no_static_rules = false;
  bool weak_sandbox = false;
  bool no_timing = false;
  std::string compile_mode = "none";
  std::string tier = "full";
  std::string race_check = "auto";
  uint64_t seed = 0;
  int jobs = 1;
  reward::ScoreOptions score;
  int feedback_tokens = 2000;
  eval::Options options;
};

struct Work {
  task::Task task;
  task::Candidate candidate;
};

// The input that was given: what can be judged, and why the rest cannot.
struct Given {
  std::vector<Work> work;
  std::vector<Error> bad;  // Each names its file and line, or its task.
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
void add_race_check(CLI::App& command, EvalArguments& arguments);
void add_timing(CLI::App& command, EvalArguments& arguments);
void add_compile_limits(CLI::App& command, EvalArguments& arguments);
void add_run_limits(CLI::App& command, EvalArguments& arguments);
void add_reward(CLI::App& command, EvalArguments& arguments);
void add_experiments(CLI::App& command, EvalArguments& arguments);

// Makes `arguments.options` of what was given.
Status settle(EvalArguments& arguments, const CLI::App& command);

// ---- Work ---------------------------------------------------------------------------------------

task::Roots roots_of(const Layout& layout);
// The place of a suite that --suite names: a path, or `tasks` for the project's own, or
// `kernelbench` for the copy in $MC_KERNELBENCH; "" stays as it is.
Result<std::filesystem::path> suite_path(const std::string& name, const Layout& layout);
// The same as task::load_task, and for a name that is not there the nearest one that is.
Result<task::Task> find_task(const std::string& spec, const task::Roots& roots);
// kInvalidInput or kNotFound where --task or --suite cannot be used.
Result<Given> load_work(const EvalArguments& arguments, const Layout& layout);
// Moves the work of each task that is none to what is bad.  An error is the machine's.
Status check_tasks(eval::Pipeline& pipeline, Given& given, int jobs);
// To standard error, a line each.
void report_bad(const std::vector<Error>& bad);
// --jobs, or where it is not given what keeps the devices busy.
int jobs_of(const EvalArguments& arguments, const CLI::App& command,
            const eval::Pipeline& pipeline);
// Calls `f(i)` for each i below `count`, by `jobs` threads.
void for_each_index(size_t count, int jobs, const std::function<void(size_t)>& f);

// ---- Verdicts -----------------------------------------------------------------------------------

// --out while candidates are still being judged: <path>.part has a line for each verdict so far, so
// that a run that is cut short loses none.  A signal that ends the run prints its name.  A device
// or a pipe gets all verdicts at the end.
class Results {
 public:
  // Does nothing where `path` is "".
  static Result<std::unique_ptr<Results>> create(const std::string& path);
  void add(const report::Judged& judged);  // Thread-safe.
  // All of them in order, in place of the part.
  Status finish(const std::vector<report::Judged>& judged);

 private:
  std::string path_;
  std::filesystem::path part_path_;  // "" where there is no part.
  std::mutex mutex_;
  std::ofstream part_;  // Guarded by mutex_.
};

// A verdict with its reward, its feedback and the time since `start`.
report::Judged judged_since(std::chrono::steady_clock::time_point start, task::Verdict verdict,
                            const EvalArguments& arguments);

// To standard output, as --json and --feedback ask for it.
void print(const std::vector<report::Judged>& judged, const EvalArguments& arguments);

// The program's exit code: kExitInput where some of the input was bad; with --exit-code, by the
// verdicts.
int exit_code_of(const std::vector<Error>& bad, const std::vector<report::Judged>& judged,
                 const EvalArguments& arguments);

}  // namespace mc::cli

#endif  // MC_CLI_JUDGING_H_
