// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include <unistd.h>

#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/service.h"
#include "core/file.h"
#include "core/layout.h"
#include "eval/pipeline.h"
#include "report/report.h"
#include "reward/feedback.h"
#include "reward/score.h"
#include "task/suite.h"
#include "task/verdict_json.h"

namespace mc::cli {
namespace {

struct EvalArguments {
  std::string task;
  std::vector<std::string> candidates;
  std::string backend = "auto";
  std::string out;
  bool json = false;
  bool feedback = false;
  bool stream = false;
  bool no_static_rules = false;
  bool weak_sandbox = false;
  bool no_shapes = false;
  bool no_timing = false;
  std::string compile_mode = "none";
  std::string tier = "full";
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

task::Roots roots_of(const Layout& layout) {
  const char* kernelbench = std::getenv("MC_KERNELBENCH");
  return {layout.share("tasks"), kernelbench != nullptr ? kernelbench : ""};
}

// The candidates of one file, each with its task: the one given by --task, or the file's own.
Status add_work(const std::string& path, const EvalArguments& arguments, const task::Roots& roots,
                std::vector<Work>& work) {
  auto submissions = task::load_submissions(path);
  if (!submissions) return submissions.error();
  for (task::Submission& submission : *submissions) {
    const std::string& spec = arguments.task.empty() ? submission.task : arguments.task;
    if (spec.empty()) {
      return Error{ErrorCode::kInvalidInput, path + " names no task: give --task"};
    }
    MC_TRY(task::Task task, task::load_task(spec, roots), "task");
    work.push_back({std::move(task), std::move(submission.candidate)});
  }
  return ok();
}

Result<std::vector<Work>> load_work(const EvalArguments& arguments, const Layout& layout) {
  std::vector<Work> work;
  for (const std::string& path : arguments.candidates) {
    if (const Status added = add_work(path, arguments, roots_of(layout), work); !added) {
      return added.error();
    }
  }
  return work;
}

// Calls `f(i)` for each i below `count`, by `jobs` threads.
void for_each_index(size_t count, int jobs, const std::function<void(size_t)>& f) {
  std::atomic<size_t> next = 0;
  const auto take_some = [&] {
    for (size_t i = next++; i < count; i = next++) f(i);
  };
  std::vector<std::jthread> threads;
  for (int i = 1; i < jobs; ++i) threads.emplace_back(take_some);
  take_some();
}

Status check_tasks(eval::Pipeline& pipeline, const std::vector<Work>& work, int jobs) {
  std::set<std::string> seen;
  std::vector<const task::Task*> tasks;
  for (const Work& item : work) {
    if (seen.insert(item.task.id).second) tasks.push_back(&item.task);
  }
  std::vector<Status> found(tasks.size(), ok());
  for_each_index(tasks.size(), jobs, [&](size_t i) { found[i] = pipeline.check_task(*tasks[i]); });
  for (size_t i = 0; i < tasks.size(); ++i) MC_TRY_VOID(found[i], "task " + tasks[i]->id);
  return ok();
}

// --out while candidates are still being judged: <path>.part has a line for each verdict so far, so
// that a run that is cut short loses none.
class Results {
 public:
  static Result<std::unique_ptr<Results>> create(const std::string& path) {
    auto results = std::make_unique<Results>();
    results->path_ = path;
    if (path.empty()) return results;
    results->part_.open(path + ".part", std::ios::trunc);
    if (results->part_) return results;
    return Error{ErrorCode::kIo, "cannot write " + path + ".part"};
  }

  // Thread-safe.
  void add(const report::Judged& judged) {
    if (path_.empty()) return;
    const std::lock_guard lock(mutex_);
    part_ << report::json_line(judged) << std::flush;
  }

  // All of them in order, in place of the part.
  Status finish(const std::vector<report::Judged>& judged) {
    if (path_.empty()) return ok();
    std::string text;
    for (const report::Judged& item : judged) text += report::json_line(item);
    MC_TRY_VOID(write_file_atomically(path_, text), "--out");
    std::error_code ignored;
    std::filesystem::remove(path_ + ".part", ignored);
    return ok();
  }

 private:
  std::string path_;
  std::mutex mutex_;
  std::ofstream part_;  // Guarded by mutex_.
};

// Judges all work with `jobs` threads; results keep the order of the work.
std::vector<report::Judged> judge_all(eval::Pipeline& pipeline, const std::vector<Work>& work,
                                      const EvalArguments& arguments, Results& results,
                                      ProgressBar& bar) {
  std::vector<report::Judged> judged(work.size());
  for_each_index(work.size(), arguments.jobs, [&](size_t i) {
    const auto start = std::chrono::steady_clock::now();
    judged[i].verdict = pipeline.evaluate(work[i].task, work[i].candidate);
    judged[i].reward = reward::score(judged[i].verdict, arguments.score);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    judged[i].seconds = taken.count();
    results.add(judged[i]);
    bar.advance(work[i].candidate.id);
  });
  return judged;
}

void print(const std::vector<report::Judged>& judged, const EvalArguments& arguments) {
  if (arguments.json) {
    for (const report::Judged& item : judged) std::cout << report::json_line(item);
    return;
  }
  std::cout << report::table(judged, {}) << report::summary(judged) << "\n";
  if (!arguments.feedback && judged.size() > 1) return;
  for (const report::Judged& item : judged) {
    reward::FeedbackOptions options;
    options.tokens_max = static_cast<size_t>(arguments.feedback_tokens);
    std::cout << "\n--- feedback: " << item.verdict.candidate << "\n"
              << reward::feedback(item.verdict, options) << "\n";
  }
}

// Questions on standard input, replies on standard output (service.h).
Status run_stream(const EvalArguments& arguments, const Layout& layout) {
  MC_TRY(auto pipeline,
         eval::Pipeline::create(
             arguments.options,
             [](std::string_view step) { std::cerr << "musacoder: " << step << std::endl; }),
         "eval");
  Service service(*pipeline, {.score = arguments.score,
                              .feedback_tokens = static_cast<size_t>(arguments.feedback_tokens)});
  serve_lines(std::cin, std::cout, service, roots_of(layout), arguments.jobs);
  return ok();
}

Status run_eval(EvalArguments& arguments, const CLI::App& command) {
  MC_TRY(arguments.options.backend, chosen_backend(arguments.backend), "eval");
  if (command.count("--seed") > 0) arguments.options.seed = arguments.seed;
  arguments.options.static_rules = !arguments.no_static_rules;
  arguments.options.allow_weak_sandbox = arguments.weak_sandbox;
  arguments.options.correctness.shapes = !arguments.no_shapes;
  arguments.options.timing.enabled = !arguments.no_timing;
  if (arguments.compile_mode == "none") arguments.compile_mode.clear();
  arguments.options.timing.compile_mode = arguments.compile_mode;
  arguments.options.timing.is_quick = arguments.tier == "quick";
  MC_TRY(const Layout layout, find_layout(), "eval");
  if (arguments.stream) return run_stream(arguments, layout);
  if (arguments.candidates.empty()) {
    return Error{ErrorCode::kInvalidInput, "give --candidate, or --stream"};
  }
  const Result<std::vector<Work>> loaded = load_work(arguments, layout);
  if (!loaded) return loaded.error();  // It names the file, and needs no other context.
  const std::vector<Work>& work = *loaded;
  MC_TRY(const auto results, Results::create(arguments.out), "eval");
  ProgressBar bar(work.size());
  MC_TRY(auto pipeline,
         eval::Pipeline::create(arguments.options, [&](std::string_view step) { bar.note(step); }),
         "eval");
  MC_TRY_VOID(check_tasks(*pipeline, work, arguments.jobs), "eval");
  const std::vector<report::Judged> judged = judge_all(*pipeline, work, arguments, *results, bar);
  bar.finish();
  MC_TRY_VOID(results->finish(judged), "eval");
  print(judged, arguments);
  return ok();
}

const CLI::Validator& positive() {
  static const CLI::Validator kPositive(
      [](const std::string& text) {
        double value = 0;
        const char* end = text.data() + text.size();
        const auto read = std::from_chars(text.data(), end, value);
        const bool is_positive = read.ec == std::errc() && read.ptr == end && value > 0;
        return is_positive ? std::string() : "'" + text + "' is no positive number";
      },
      "POSITIVE");
  return kPositive;
}

void add_common(CLI::App& command, EvalArguments& arguments) {
  command.add_option("--task", arguments.task,
                     "A KernelBench .py file, suite:level/id, or family/name of tasks/");
  command.add_option("--candidate,-c", arguments.candidates,
                     "Raw answer (.md, .txt), module (.py), or .jsonl of {task, sample, response}");
  command.add_option("--out,-o", arguments.out, "Write verdicts as JSON Lines to this file");
  command.add_option("--jobs,-j", arguments.jobs, "Candidates judged at once")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command.add_option("--backend", arguments.backend, "auto, cpu or cuda")->capture_default_str();
  command
      .add_option("--policy", arguments.options.policy,
                  "What a candidate may do: musacoder, or kernelbench (docs/legality.md)")
      ->capture_default_str();
  command.add_option("--seed", arguments.seed, "Seed of all inputs (default: secret)")
      ->check(CLI::NonNegativeNumber);
  command.add_flag("--strict", arguments.options.strict,
                   "For winners and audits: other seeds and, on a device, compute-sanitizer");
  command.add_flag("--feedback", arguments.feedback, "Print the feedback for each candidate");
  command.add_flag("--json", arguments.json, "Print verdicts as JSON Lines");
}

void add_correctness(CLI::App& command, EvalArguments& arguments) {
  command.option_defaults()->group("Correctness");
  eval::Correctness& correctness = arguments.options.correctness;
  command.add_option("--trials", correctness.trials, "Trials at the main shape")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command.add_option("--tolerance", correctness.tolerance_fp32, "For fp32 and fp64 outputs")
      ->check(positive())
      ->capture_default_str();
  command.add_option("--tolerance-half", correctness.tolerance_half, "For fp16 and bf16 outputs")
      ->check(positive())
      ->capture_default_str();
  command.add_flag("--require-general", correctness.require_general,
                   "Other sizes than the task's own count, whatever the task says");
  command.add_flag("--no-shapes", arguments.no_shapes, "Judge at the task's own shape only");
}

void add_timing(CLI::App& command, EvalArguments& arguments) {
  command.option_defaults()->group("Timing (on a device)");
  command
      .add_option("--timing", arguments.tier,
                  "full, for reports, or quick, for rewards: some 0.3 s of the device")
      ->check(CLI::IsMember({"full", "quick"}))
      ->capture_default_str();
  command.add_flag("--no-timing", arguments.no_timing, "Correctness alone");
  command
      .add_option("--baseline", arguments.options.timing.baseline,
                  "What is timed by turns with the candidate")
      ->check(CLI::IsMember({"eager", "candidate"}))
      ->capture_default_str();
  command
      .add_option("--compile-mode", arguments.compile_mode,
                  "Of torch.compile, the other baseline, or none")
      ->check(CLI::IsMember(
          {"none", "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"}))
      ->capture_default_str();
  command
      .add_option("--timing-budget", arguments.options.timing.budget_s, "Seconds for one candidate")
      ->check(positive())
      ->capture_default_str();
  command
      .add_option("--spares", arguments.options.spares,
                  "Contestants kept ready, at 0.6 GiB of the device each")
      ->check(CLI::Range(0, 16))
      ->capture_default_str();
}

void add_limits(CLI::App& command, EvalArguments& arguments) {
  command.option_defaults()->group("Limits");
  eval::Limits& limits = arguments.options.limits;
  command.add_option("--compile-timeout", limits.compile_s, "Seconds for one compilation")
      ->check(positive())
      ->capture_default_str();
  command.add_option("--load-timeout", limits.load_s, "Seconds to import and construct it")
      ->check(positive())
      ->capture_default_str();
  command.add_option("--timeout", limits.forward_s, "Seconds for one call of the candidate")
      ->check(positive())
      ->capture_default_str();
  command.add_option("--memory", limits.memory_bytes, "Bytes of memory for the candidate (4GiB)")
      ->transform(CLI::AsSizeValue(false));
}

void add_reward(CLI::App& command, EvalArguments& arguments) {
  command.option_defaults()->group("Reward and feedback");
  command.add_option("--lambda", arguments.score.lambda, "Weight of the speed-up in the reward")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("--nu-max", arguments.score.nu_max, "The most of the speed-up that counts")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("--feedback-tokens", arguments.feedback_tokens, "Bound of the feedback")
      ->check(CLI::Range(50, 100000))
      ->capture_default_str();
}

void add_rest(CLI::App& command, EvalArguments& arguments) {
  command.option_defaults()->group("For programs and experiments");
  command
      .add_flag("--stream", arguments.stream,
                "Read questions {id, task, answer} a line each, reply as each is judged")
      ->excludes("--candidate");
  command.add_flag("--full-headers", arguments.options.full_headers,
                   "Compile all against PyTorch's own headers (slow)");
  command.add_flag("--no-static-rules", arguments.no_static_rules, "Let only the run decide");
  command.add_flag("--allow-weak-sandbox", arguments.weak_sandbox,
                   "Go on where this machine cannot give a protection");
}

}  // namespace

Result<task::Backend> chosen_backend(const std::string& name) {
  if (name == "auto") return eval::best_backend({});
  if (name == "cpu") return task::Backend::kCpu;
  if (name == "cuda") return task::Backend::kCuda;
  return Error{ErrorCode::kInvalidInput,
               "backend '" + name + "' is not built in: use auto, cpu or cuda"};
}

int report_error(const Error& error) {
  std::string line = error.message;
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  std::cerr << "musacoder: " << line << std::endl;
  const bool input = error.code == ErrorCode::kInvalidInput || error.code == ErrorCode::kNotFound;
  return input ? kExitInput : kExitMachine;
}

void add_eval(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<EvalArguments>();
  CLI::App* command = app.add_subcommand("eval", "Judge candidates");
  add_common(*command, *arguments);
  add_correctness(*command, *arguments);
  add_timing(*command, *arguments);
  add_limits(*command, *arguments);
  add_reward(*command, *arguments);
  add_rest(*command, *arguments);
  command->callback([arguments, command, &exit_code] {
    const Status status = run_eval(*arguments, *command);
    exit_code = status ? kExitDone : report_error(status.error());
  });
}

}  // namespace mc::cli
