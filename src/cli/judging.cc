// SPDX-License-Identifier: Apache-2.0
#include "cli/judging.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include <unistd.h>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/numbers.h"
#include "cli/suggest.h"
#include "core/check.h"
#include "core/file.h"
#include "reward/feedback.h"
#include "sample/suite.h"

namespace mc::cli {
namespace {

constexpr uint64_t kMemoryMin = 256 << 20;  // The memory that Python with PyTorch needs.

// A suggestion such as "; did you mean reduction/row_sum?" if the name, or its part after the
// slash, is near to a known one.
std::string meant(const std::string& name, const std::vector<std::string>& names) {
  std::optional<std::string> found = nearest(name, names);
  const auto last_part = [](const std::string& id) { return id.substr(id.find('/') + 1); };
  for (const std::string& id : names) {
    if (!found && last_part(id) == last_part(name)) found = id;
  }
  return found ? "; did you mean " + *found + "?"
               : "; musacoder task list tasks shows what there is";
}

// Tasks by the names that users and files give them; each is loaded once.
class Tasks {
 public:
  // If `suite` is "", tasks are found by the rules of load_task.
  static Result<Tasks> create(const std::filesystem::path& suite, task::Roots roots) {
    Tasks tasks(std::move(roots));
    if (suite.empty()) return tasks;
    MC_TRY(std::vector<sample::Item> items, sample::load_bench_suite(suite), "--suite");
    tasks.is_suite_ = true;
    for (sample::Item& item : items) tasks.found_.emplace(item.task.id, std::move(item.task));
    return tasks;
  }

  Result<task::Task> find(const std::string& name) {
    const auto known = found_.find(name);
    if (known != found_.end()) return known->second;
    if (is_suite_) {
      std::vector<std::string> names;
      for (const auto& [id, task] : found_) names.push_back(id);
      return Error{ErrorCode::kNotFound, "the suite has no task " + name + meant(name, names)};
    }
    return found_.emplace(name, find_task(name, roots_)).first->second;
  }

 private:
  explicit Tasks(task::Roots roots) : roots_(std::move(roots)) {}
  task::Roots roots_;
  bool is_suite_ = false;
  std::map<std::string, Result<task::Task>> found_;
};

// The reason why a file cannot be a candidate, from its name; "" if it can.
std::string why_no_candidate(const std::filesystem::path& path) {
  static const std::set<std::string> kNative = {".cu",  ".cuh", ".mu", ".muh", ".cc", ".cpp",
                                                ".cxx", ".c",   ".h",  ".hpp", ".so", ".ptx"};
  if (!kNative.contains(path.extension().string())) return "";
  return path.string() +
         " is no candidate: give a Python module (.py) with a class ModelNew that compiles its "
         "CUDA source by torch.utils.cpp_extension.load_inline (examples/row_sum_race.py), or a "
         "model's answer (.md, .txt) with such a module in a fenced block";
}

// The files for a path; for a folder, its modules and answers.
Result<std::vector<std::string>> files_of(const std::string& path) {
  static const std::set<std::string> kCandidates = {".py", ".md", ".txt"};
  std::error_code failure;
  if (!std::filesystem::is_directory(path, failure)) return std::vector{path};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path, failure)) {
    if (kCandidates.contains(entry.path().extension().string())) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  if (failure) return Error{ErrorCode::kIo, "cannot list " + path + ": " + failure.message()};
  if (files.empty()) return invalid("the folder " + path + " holds no .py, .md or .txt file");
  return files;
}

// Adds the candidates of one file, each with its task: the task of --task, or the one that the file
// names.
void add_work(const std::string& path, const std::string& task, const std::string& entry_point,
              Tasks& tasks, LoadedWork& given) {
  if (const std::string why = why_no_candidate(path); !why.empty()) {
    given.bad.push_back(invalid(why));
    return;
  }
  auto submissions = task::load_submissions(path);
  if (!submissions) {
    given.bad.push_back(submissions.error());
    return;
  }
  std::ranges::move(submissions->bad, std::back_inserter(given.bad));
  for (task::Submission& submission : submissions->good) {
    const std::string& name = task.empty() ? submission.task : task;
    auto found = name.empty() ? Result<task::Task>(invalid("it names no task: give --task"))
                              : tasks.find(name);
    if (found && !entry_point.empty()) {
      found = task::with_entry_point(std::move(*found), entry_point);
    }
    if (found) {
      given.work.push_back({std::move(*found), std::move(submission.candidate)});
    } else {
      given.bad.push_back(with_context(found.error(), submission.place));
    }
  }
}

// The number of an architecture: "90" for "sm_90" and "compute_90".
std::string plain_architecture(const std::string& name) {
  for (const std::string_view prefix : {"sm_", "compute_"}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return name;
}

}  // namespace

void add_candidates(CLI::App& command, EvalArguments& arguments) {
  command.add_option("--task", arguments.task,
                     "A KernelBench .py file, suite:level/id, or family/name of tasks/");
  command.add_option("--entry-point", arguments.entry_point,
                     "The task's class that is the model, where none is called Model");
  command.add_option("--candidate,-c,candidate", arguments.candidates,
                     "Module (.py), raw answer (.md, .txt), folder of these, or .jsonl of {task, "
                     "sample, response}");
  command.add_option(
      "--suite", arguments.suite,
      "Where the tasks of a .jsonl are: as for bench; musacoder task list shows some");
}

void add_machine(CLI::App& command, EvalArguments& arguments) {
  command
      .add_option("--jobs,-j", arguments.jobs,
                  "Candidates judged at once; eval and measure: by default " +
                      std::to_string(eval::kJobsADevice) + " for each GPU, at most one a core")
      ->check(whole_range(1, 256));
  command.add_option("--backend", arguments.backend, eval::backend_names());
  command.add_option(
      "--devices", arguments.options.devices,
      "GPUs to judge on, one timed candidate each: all, or numbers and ids, 0,GPU-8c7a");
  command.add_option("--policy", arguments.options.policy,
                     "What a candidate may do: musacoder, or kernelbench (docs/legality.md)");
  command
      .add_option("--language", arguments.options.language,
                  "The only one that kernels may be in: cuda or triton (docs/ptx.md, Triton)")
      ->check(one_of({task::kAnyLanguage, task::kNative, task::kTriton}));
}

void add_dialect(CLI::App& command, EvalArguments& arguments) {
  std::vector<std::pair<std::string, task::Dialect>> dialects;
  for (const task::Dialect dialect : task::kDialects) {
    dialects.emplace_back(to_string(dialect), dialect);
  }
  add_choice(command, "--dialect", arguments.options.dialect, dialects,
             "What candidates are written for; those for MUSA are judged as their port to "
             "CUDA, except by --backend musa (docs/musa.md)");
  command
      .add_option("--musa-arch", arguments.options.musa_architecture,
                  "With --dialect musa: the architecture, by which __MUSA_ARCH__ and the size of "
                  "warps are chosen")
      ->check(one_of({"mp_31", "mp_22", "mp_21"}));
}

void add_verdicts(CLI::App& command, EvalArguments& arguments) {
  command.add_option("--out,-o", arguments.out, "Write verdicts as JSON Lines to this file")
      ->check(kOutputFile);
  add_seed(command, arguments);
  command.add_flag("--strict", arguments.options.strict,
                   "For winners and audits: other seeds and, on a device, compute-sanitizer");
  command.add_flag("--feedback", arguments.feedback, "Print the feedback for each candidate");
  command.add_flag("--json", arguments.json, "Print verdicts as JSON Lines");
  command.add_flag("--exit-code", arguments.exit_code,
                   "Exit with 0 only if all pass; 3: some fail, 4: some are not scored");
}

void add_correctness(CLI::App& command, task::Correctness& correctness) {
  command.option_defaults()->group(kCorrectnessGroup);
  command.add_option("--trials", correctness.trials, "Trials at the main shape")
      ->check(whole_range(1, task::kTrialsMax));
  command
      .add_option("--inputs", correctness.inputs,
                  "Values: varied, native (the task's own alone), or verified (these times 1, 3, "
                  "0.01 and -1)")
      ->check(one_of(task::input_sets()));
  command
      .add_option("--mode", correctness.mode,
                  "Of reference and candidate: train (as the constructor leaves it) or eval")
      ->check(one_of(task::modes()));
  command
      .add_option("--precision", correctness.precision,
                  "Inputs and models are cast to it; task: they stay as the task has them")
      ->check(one_of(task::precisions()));
  command.add_option("--tolerance", correctness.tolerance_fp32, "For fp32 and fp64 outputs")
      ->check(kPositive);
  command.add_option("--tolerance-half", correctness.tolerance_half, "For fp16 and bf16 outputs")
      ->check(kPositive);
  command.add_flag("--require-general", correctness.require_general,
                   "Other sizes than the task's own count, whatever the task says");
  add_no_shapes(command, correctness);
}

void add_no_shapes(CLI::App& command, task::Correctness& correctness) {
  command.add_flag_callback(
      "--no-shapes", [&correctness] { correctness.shapes = false; },
      "Judge at the task's own shape only");
}

void add_seed(CLI::App& command, EvalArguments& arguments) {
  command.add_option("--seed", arguments.options.seed, "Seed of all inputs (default: secret)")
      ->check(kNotNegative);
}

void add_race_check(CLI::App& command, EvalArguments& arguments) {
  using Mode = eval::RaceCheckMode;
  add_choice(command, "--race-check", arguments.options.race_check,
             {{"auto", Mode::kAuto}, {"on", Mode::kOn}, {"off", Mode::kOff}},
             "Beside a GPU, look for the races that it hides, on CPU cores; "
             "auto: on with two cores for each of --jobs (docs/correctness.md)")
      ->group(kCorrectnessGroup);
}

void add_timing(CLI::App& command, EvalArguments& arguments) {
  command.option_defaults()->group(kTimingGroup);
  eval::Timing& timing = arguments.options.timing;
  add_choice(command, "--timing", timing.is_quick, {{"full", false}, {"quick", true}},
             "full, for reports, or quick, for rewards: some 0.3 s of the device");
  command.add_flag_callback(
      "--no-timing", [&timing] { timing.enabled = false; }, "Correctness alone");
  command.add_option("--baseline", timing.baseline, "What is timed by turns with the candidate")
      ->check(one_of({"eager", "candidate"}));
  add_choice(command, "--compile-mode", timing.compile_mode,
             {{"none", ""},
              {"default", "default"},
              {"reduce-overhead", "reduce-overhead"},
              {"max-autotune", "max-autotune"},
              {"max-autotune-no-cudagraphs", "max-autotune-no-cudagraphs"}},
             "Of torch.compile, the other baseline, or none");
  command.add_flag("--profile", arguments.options.profile,
                   "Count the sectors that kernels move, for each trial (the backend cpu)");
  command.add_flag("--tf32", timing.tf32,
                   "Candidates and baselines may round factors of fp32 products to TF32");
  command.add_option("--timing-budget", timing.budget_s, "Seconds for one candidate")
      ->check(kPositive);
  command
      .add_option("--spares", arguments.options.spares,
                  "Judges kept ready, at 0.6 GiB of the device each")
      ->check(whole_range(0, 16));
}

void add_compile_limits(CLI::App& command, EvalArguments& arguments) {
  command.option_defaults()->group(kLimitsGroup);
  eval::Limits& limits = arguments.options.limits;
  command
      .add_option("--compile-timeout", limits.compile_s,
                  "Seconds of processor time for one compilation")
      ->check(kPositive);
}

void add_run_limits(CLI::App& command, EvalArguments& arguments) {
  command.option_defaults()->group(kLimitsGroup);
  eval::Limits& limits = arguments.options.limits;
  command.add_option("--load-timeout", limits.load_s, "Seconds to import and construct it")
      ->check(kPositive);
  command.add_option("--timeout", limits.forward_s, "Seconds for one call of the candidate")
      ->check(kPositive);
  command
      .add_option("--candidate-timeout", limits.candidate_s,
                  "Seconds by the clock for all that the candidate does, without waits for others")
      ->check(kPositive);
  command
      .add_option("--memory", limits.memory_bytes,
                  "Memory for the candidate: 512MiB, 8GiB (default: 4GiB)")
      ->type_name("SIZE")
      ->transform(byte_size(kMemoryMin, "256MiB"));
}

void add_reward(CLI::App& command, EvalArguments& arguments) {
  command.option_defaults()->group("Reward and feedback");
  command.add_option("--lambda", arguments.score.lambda, "Weight of the speed-up in the reward")
      ->check(kNotNegative);
  command.add_option("--nu-max", arguments.score.nu_max, "The most of the speed-up that counts")
      ->check(kNotNegative);
  command.add_option("--feedback-tokens", arguments.feedback_tokens, "Bound of the feedback")
      ->check(whole_range(50, 100000));
}

void add_experiments(CLI::App& command, EvalArguments& arguments) {
  command.option_defaults()->group("For programs and experiments");
  command.add_flag("--full-headers", arguments.options.full_headers,
                   "Compile all against PyTorch's own headers (slow)");
  command.add_flag_callback(
      "--no-static-rules", [&arguments] { arguments.options.static_rules = false; },
      "Let only the run decide");
  command.add_flag("--allow-weak-sandbox", arguments.options.allow_weak_sandbox,
                   "Go on where this machine cannot give a protection");
}

void add_architecture(CLI::App& command, EvalArguments& arguments) {
  command.add_option(
      "--architecture", arguments.options.architecture,
      "For a device that need not be here: its compute capability, 90 or sm_90, or mp_31");
}

Status resolve_options(EvalArguments& arguments, const CLI::App& command) {
  eval::Options& options = arguments.options;
  if (!options.architecture.empty()) {
    options.architecture = plain_architecture(options.architecture);
    arguments.backend = options.architecture;
  }
  MC_TRY(options.backend, chosen_backend(arguments.backend), command.get_name());
  const CLI::Option* architecture = command.get_option_no_throw("--musa-arch");
  if (options.dialect == task::Dialect::kCuda && architecture != nullptr &&
      architecture->count() > 0) {
    return invalid("--musa-arch: add --dialect musa");
  }
  const CLI::Option* jobs = command.get_option_no_throw("--jobs");
  if (jobs != nullptr && jobs->count() > 0) options.jobs = arguments.jobs;
  return ok();
}

task::Roots roots_of(const Layout& layout) {
  const char* kernelbench = std::getenv("MC_KERNELBENCH");
  return {layout.share("data/tasks"), kernelbench != nullptr ? kernelbench : ""};
}

Result<std::filesystem::path> suite_path(const std::string& name, const Layout& layout) {
  if (name.empty()) return std::filesystem::path();
  if (name == "tasks") return layout.share("data/tasks");
  const char* kernelbench = std::getenv("MC_KERNELBENCH");
  const bool is_missing = name == "kernelbench" && kernelbench == nullptr;
  if (is_missing && !std::filesystem::exists(name)) return task::no_kernelbench();
  return std::filesystem::path(name == "kernelbench" && !is_missing ? kernelbench : name);
}

Result<task::Task> find_task(const std::string& spec, const task::Roots& roots) {
  auto found = task::load_task(spec, roots);
  const bool is_path = spec.ends_with(".py") || spec.find(':') != std::string::npos;
  if (found || is_path || roots.tasks.empty()) return found;
  std::vector<std::string> names;
  if (const auto own = task::load_suite(roots.tasks, "own")) {
    for (const task::Task& task : *own) names.push_back(task.id);
  }
  return Error{found.error().code, found.error().message + meant(spec, names)};
}

Result<LoadedWork> load_work(const EvalArguments& arguments, const Layout& layout) {
  MC_TRY(const std::filesystem::path suite, suite_path(arguments.suite, layout), "--suite");
  MC_TRY(Tasks tasks, Tasks::create(suite, roots_of(layout)), "eval");
  if (!arguments.task.empty()) MC_TRY_VOID(tasks.find(arguments.task), "--task");
  LoadedWork given;
  for (const std::string& path : arguments.candidates) {
    const auto files = files_of(path);
    if (!files) given.bad.push_back(files.error());
    for (const std::string& file : files ? *files : std::vector<std::string>()) {
      add_work(file, arguments.task, arguments.entry_point, tasks, given);
    }
  }
  report_bad(given.bad);
  return given;
}

Result<std::unique_ptr<eval::Pipeline>> open_pipeline(const eval::Options& options,
                                                      ProgressBar& bar) {
  return eval::Pipeline::create(options, [&bar](std::string_view step) { bar.note(step); });
}

int jobs_of(const EvalArguments& arguments, const CLI::App& command,
            const eval::Pipeline& pipeline) {
  const bool is_given = command.get_option("--jobs")->count() > 0;
  return is_given ? arguments.jobs : std::max(arguments.jobs, pipeline.jobs_wanted());
}

void for_each_index(size_t count, int jobs, const std::function<void(size_t)>& f) {
  MC_CHECK(jobs > 0 && f);
  // The counter gives each index to one thread, and orders nothing else: the threads are joined
  // before the function returns, so the caller sees all that they wrote.
  std::atomic<size_t> next = 0;
  const auto take_some = [&] {
    for (size_t i = next++; i < count; i = next++) f(i);
  };
  std::vector<std::jthread> threads;
  for (int i = 1; i < jobs; ++i) threads.emplace_back(take_some);
  take_some();
}

Status check_tasks(eval::Pipeline& pipeline, LoadedWork& given, int jobs) {
  std::set<std::string> faults;  // The ids of the invalid tasks.
  std::set<std::string> seen;
  std::vector<const task::Task*> tasks;
  for (const Work& item : given.work) {
    if (seen.insert(item.task.id).second) tasks.push_back(&item.task);
  }
  std::vector<Status> found(tasks.size(), ok());
  for_each_index(tasks.size(), jobs, [&](size_t i) { found[i] = pipeline.check_task(*tasks[i]); });
  std::vector<Error> bad;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (found[i]) continue;
    const Error error = with_context(found[i].error(), "task " + tasks[i]->id);
    if (error.code != ErrorCode::kInvalidInput) return error;
    faults.insert(tasks[i]->id);
    bad.push_back(error);
  }
  std::erase_if(given.work, [&](const Work& item) { return faults.contains(item.task.id); });
  report_bad(bad);
  std::ranges::move(bad, std::back_inserter(given.bad));
  return ok();
}

void report_bad(const std::vector<Error>& bad) {
  constexpr size_t kShownMax = 20;
  for (size_t i = 0; i < std::min(bad.size(), kShownMax); ++i) report_error(bad[i]);
  if (bad.size() <= kShownMax) return;
  std::cerr << "musacoder: and " << bad.size() - kShownMax << " more that cannot be judged"
            << std::endl;
}

Result<std::unique_ptr<VerdictFile>> VerdictFile::create(const std::string& path) {
  auto results = std::make_unique<VerdictFile>();
  results->path_ = path;
  const std::filesystem::path target = path.empty() ? "" : output_target(path);
  if (target.empty()) return results;
  const std::string part = target.string() + ".part";
  results->part_path_ = part;
  results->part_.open(part, std::ios::trunc);
  if (!results->part_) return system_error(ErrorCode::kIo, "--out: cannot write " + part);
  print_when_ended("musacoder: interrupted; the verdicts so far are in " + part);
  return results;
}

void VerdictFile::add(const report::Judged& judged) {
  if (part_path_.empty()) return;
  const std::lock_guard lock(mutex_);
  MC_CHECK(part_.is_open());
  part_ << report::json_line(judged) << std::flush;
}

Status VerdictFile::finish(const std::vector<report::Judged>& judged) {
  if (path_.empty()) return ok();
  std::string text;
  for (const report::Judged& item : judged) text += report::json_line(item);
  const Status written = write_output(path_, text);
  print_when_ended("");
  if (!written) {
    const std::string where = part_path_.empty() ? "" : "; they are in " + part_path_.string();
    return Error{written.error().code, "--out: " + written.error().message + where};
  }
  std::error_code ignored;
  std::filesystem::remove(part_path_, ignored);
  return ok();
}

report::Judged judged_since(std::chrono::steady_clock::time_point start, task::Verdict verdict,
                            const EvalArguments& arguments) {
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  const std::optional<double> reward = reward::score(verdict, arguments.score);
  std::string feedback =
      reward::feedback(verdict, {.tokens_max = static_cast<size_t>(arguments.feedback_tokens)});
  return {std::move(verdict), reward, taken.count(), std::move(feedback)};
}

// Colours on a terminal, unless NO_COLOR is set (no-color.org).
report::Colour colour_of_output() {
  const char* refused = std::getenv("NO_COLOR");
  const bool is_refused = refused != nullptr && *refused != '\0';
  const bool is_coloured = ::isatty(STDOUT_FILENO) == 1 && !is_refused;
  return is_coloured ? report::Colour::kOutcomes : report::Colour::kNone;
}

void print(const std::vector<report::Judged>& judged, const EvalArguments& arguments) {
  if (arguments.json) {
    for (const report::Judged& item : judged) std::cout << report::json_line(item);
    return;
  }
  std::cout << report::table(judged, {.colour = colour_of_output()}) << report::summary(judged)
            << "\n";
  if (!arguments.feedback && judged.size() > 1) return;
  for (const report::Judged& item : judged) {
    std::cout << "\n--- feedback: " << item.verdict.candidate << "\n" << item.feedback << "\n";
  }
}

int exit_code_of(const std::vector<Error>& bad, const std::vector<report::Judged>& judged,
                 const EvalArguments& arguments) {
  if (!bad.empty()) return kExitInput;
  if (!arguments.exit_code) return kExitDone;
  const auto passes = [](const report::Judged& one) {
    return std::holds_alternative<task::Passed>(one.verdict.outcome);
  };
  const auto fails = [&](const report::Judged& one) { return one.reward && !passes(one); };
  if (std::ranges::any_of(judged, fails)) return kExitFailed;
  return std::ranges::all_of(judged, passes) ? kExitDone : kExitUnscored;
}

Result<task::Backend> chosen_backend(const std::string& name) {
  if (name == "auto") return eval::best_backend({});
  if (const auto backend = eval::backend_named(name)) return *backend;
  return invalid("no backend or architecture is called '" + name + "': use " +
                 eval::backend_names());
}

}  // namespace mc::cli
