// SPDX-License-Identifier: Apache-2.0
#include "cli/judging.h"

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>
#include <thread>
#include <utility>

#include "cli/commands.h"
#include "cli/numbers.h"
#include "core/file.h"
#include "reward/feedback.h"

namespace mc::cli {
namespace {

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

}  // namespace

void add_candidates(CLI::App& command, EvalArguments& arguments) {
  command.add_option("--task", arguments.task,
                     "A KernelBench .py file, suite:level/id, or family/name of tasks/");
  command.add_option("--candidate,-c", arguments.candidates,
                     "Raw answer (.md, .txt), module (.py), or .jsonl of {task, sample, response}");
}

void add_machine(CLI::App& command, EvalArguments& arguments) {
  command.add_option("--jobs,-j", arguments.jobs, "Candidates judged at once")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command.add_option("--backend", arguments.backend, eval::backend_names())->capture_default_str();
  command
      .add_option("--policy", arguments.options.policy,
                  "What a candidate may do: musacoder, or kernelbench (docs/legality.md)")
      ->capture_default_str();
}

void add_verdicts(CLI::App& command, EvalArguments& arguments) {
  command.add_option("--out,-o", arguments.out, "Write verdicts as JSON Lines to this file");
  command.add_option("--seed", arguments.seed, "Seed of all inputs (default: secret)")
      ->check(kNotNegative);
  command.add_flag("--strict", arguments.options.strict,
                   "For winners and audits: other seeds and, on a device, compute-sanitizer");
  command.add_flag("--feedback", arguments.feedback, "Print the feedback for each candidate");
  command.add_flag("--json", arguments.json, "Print verdicts as JSON Lines");
}

void add_correctness(CLI::App& command, task::Correctness& correctness) {
  command.option_defaults()->group("Correctness");
  command.add_option("--trials", correctness.trials, "Trials at the main shape")
      ->check(CLI::Range(1, task::kTrialsMax))
      ->capture_default_str();
  command
      .add_option("--inputs", correctness.inputs,
                  "Values: varied, native (the task's own alone), or verified (these times 1, 3, "
                  "0.01 and -1)")
      ->check(CLI::IsMember(task::input_sets()))
      ->capture_default_str();
  command
      .add_option("--mode", correctness.mode,
                  "Of reference and candidate: train (as the constructor leaves it) or eval")
      ->check(CLI::IsMember(task::modes()))
      ->capture_default_str();
  command
      .add_option("--precision", correctness.precision,
                  "Inputs and models are cast to it; task: they stay as the task has them")
      ->check(CLI::IsMember(task::precisions()))
      ->capture_default_str();
  command.add_option("--tolerance", correctness.tolerance_fp32, "For fp32 and fp64 outputs")
      ->check(positive())
      ->capture_default_str();
  command.add_option("--tolerance-half", correctness.tolerance_half, "For fp16 and bf16 outputs")
      ->check(positive())
      ->capture_default_str();
  command.add_flag("--require-general", correctness.require_general,
                   "Other sizes than the task's own count, whatever the task says");
  add_no_shapes(command, correctness);
}

void add_no_shapes(CLI::App& command, task::Correctness& correctness) {
  command.add_flag_callback(
      "--no-shapes", [&correctness] { correctness.shapes = false; },
      "Judge at the task's own shape only");
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
  command.add_flag("--tf32", arguments.options.timing.tf32,
                   "The baselines may round factors of fp32 products to TF32");
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

void add_compile_limits(CLI::App& command, EvalArguments& arguments) {
  command.option_defaults()->group("Limits");
  eval::Limits& limits = arguments.options.limits;
  command.add_option("--compile-timeout", limits.compile_s, "Seconds for one compilation")
      ->check(positive())
      ->capture_default_str();
}

void add_run_limits(CLI::App& command, EvalArguments& arguments) {
  command.option_defaults()->group("Limits");
  eval::Limits& limits = arguments.options.limits;
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
      ->check(kNotNegative)
      ->capture_default_str();
  command.add_option("--nu-max", arguments.score.nu_max, "The most of the speed-up that counts")
      ->check(kNotNegative)
      ->capture_default_str();
  command.add_option("--feedback-tokens", arguments.feedback_tokens, "Bound of the feedback")
      ->check(CLI::Range(50, 100000))
      ->capture_default_str();
}

void add_experiments(CLI::App& command, EvalArguments& arguments) {
  command.option_defaults()->group("For programs and experiments");
  command.add_flag("--full-headers", arguments.options.full_headers,
                   "Compile all against PyTorch's own headers (slow)");
  command.add_flag("--no-static-rules", arguments.no_static_rules, "Let only the run decide");
  command.add_flag("--allow-weak-sandbox", arguments.weak_sandbox,
                   "Go on where this machine cannot give a protection");
}

Status settle(EvalArguments& arguments, const CLI::App& command) {
  eval::Options& options = arguments.options;
  MC_TRY(options.backend, chosen_backend(arguments.backend), command.get_name());
  const CLI::Option* seed = command.get_option_no_throw("--seed");
  if (seed != nullptr && seed->count() > 0) options.seed = arguments.seed;
  options.static_rules = !arguments.no_static_rules;
  options.allow_weak_sandbox = arguments.weak_sandbox;
  options.timing.enabled = !arguments.no_timing;
  if (arguments.compile_mode == "none") arguments.compile_mode.clear();
  options.timing.compile_mode = arguments.compile_mode;
  options.timing.is_quick = arguments.tier == "quick";
  return ok();
}

task::Roots roots_of(const Layout& layout) {
  const char* kernelbench = std::getenv("MC_KERNELBENCH");
  return {layout.share("tasks"), kernelbench != nullptr ? kernelbench : ""};
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

Result<std::unique_ptr<Results>> Results::create(const std::string& path) {
  auto results = std::make_unique<Results>();
  results->path_ = path;
  if (path.empty()) return results;
  results->part_.open(path + ".part", std::ios::trunc);
  if (results->part_) return results;
  return Error{ErrorCode::kIo, "cannot write " + path + ".part"};
}

void Results::add(const report::Judged& judged) {
  if (path_.empty()) return;
  const std::lock_guard lock(mutex_);
  part_ << report::json_line(judged) << std::flush;
}

Status Results::finish(const std::vector<report::Judged>& judged) {
  if (path_.empty()) return ok();
  std::string text;
  for (const report::Judged& item : judged) text += report::json_line(item);
  MC_TRY_VOID(write_file_atomically(path_, text), "--out");
  std::error_code ignored;
  std::filesystem::remove(path_ + ".part", ignored);
  return ok();
}

report::Judged judged_since(std::chrono::steady_clock::time_point start, task::Verdict verdict,
                            const EvalArguments& arguments) {
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  const std::optional<double> reward = reward::score(verdict, arguments.score);
  return {std::move(verdict), reward, taken.count()};
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

Result<task::Backend> chosen_backend(const std::string& name) {
  if (name == "auto") return eval::best_backend({});
  if (const auto backend = eval::backend_named(name)) return *backend;
  return Error{ErrorCode::kInvalidInput,
               "no backend or architecture is called '" + name + "': use " + eval::backend_names()};
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

}  // namespace mc::cli
