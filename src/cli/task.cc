// SPDX-License-Identifier: Apache-2.0
//
// The command `musacoder task list` lists suites and tasks, with --json also their texts and
// prompts. The command `musacoder task check` grades how well the comparison of a task detects
// wrong answers, before a model is rewarded by it (docs/task_hygiene.md).
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/judging.h"
#include "cli/progress.h"
#include "core/layout.h"
#include "eval/pipeline.h"
#include "sample/suite.h"
#include "task/suite.h"

namespace mc::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTrivial = "trivial";
constexpr const char* kInvalid = "invalid";          // The file is not a valid task.
constexpr const char* kUnsupported = "unsupported";  // This backend cannot judge the task.
constexpr const char* kFailed = "failed";            // The machine or the task's own code failed.

struct Checked {
  std::string task;
  std::string grade;  // A grade of task::TaskGrade, or one of the names above.
  std::vector<std::string> reasons;
  // The shape at which the task was graded: "native" or "reduced"; "" if it was not graded.
  std::string shape;
};

// ---- list ---------------------------------------------------------------------------------------

Status print_tasks(const std::string& suite, const Layout& layout) {
  const bool is_numbered = suite != "tasks";
  MC_TRY(const auto path, suite_path(suite, layout), suite);
  MC_TRY(const auto tasks, task::load_suite(path, is_numbered ? "kernelbench" : "own"), suite);
  for (const task::Task& task : tasks) std::cout << task.id << "\n";
  return ok();
}

void print_suites(const Layout& layout) {
  const auto row = [](const std::string& suite, const std::string& num, const std::string& what) {
    std::cout << fmt::format("{:12}  {:>5}  {}\n", suite, num, what);
  };
  row("suite", "tasks", "what it is, and how one of its tasks is named");
  const auto own = task::load_suite(layout.share("data/tasks"), "own");
  row("tasks", own ? std::to_string(own->size()) : "-",
      "the project's own: --task reduction/row_sum");
  const task::Roots roots = roots_of(layout);
  const auto theirs = task::load_suite(roots.kernelbench, "kernelbench");
  row("kernelbench", !roots.kernelbench.empty() && theirs ? std::to_string(theirs->size()) : "-",
      roots.kernelbench.empty() ? "set MC_KERNELBENCH to a checkout, or to a folder of level*.jsonl"
                                : "the copy in $MC_KERNELBENCH: --task kernelbench:1/19");
  row("PATH", "", "a checkout of KernelBench, a folder of .py files, or a .jsonl file");
  std::cout << "musacoder task list SUITE prints the names of its tasks.\n";
}

// Prints a JSON line for each task, with what trainers and the service need.
Status print_rows(const std::string& suite, const Layout& layout) {
  MC_TRY(const auto path, suite_path(suite, layout), suite);
  MC_TRY(const auto items, sample::load_bench_suite(path), suite);
  for (const sample::Item& item : items) {
    nlohmann::ordered_json prompt = nlohmann::ordered_json::array();
    for (const sample::Message& message : item.prompt) {
      prompt.push_back({{"role", message.role}, {"content", message.content}});
    }
    const nlohmann::ordered_json row = {
        {"id", item.task.id}, {"code", item.task.code}, {"prompt", std::move(prompt)}};
    std::cout << row.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  }
  return ok();
}

Status run_list(const std::string& suite, bool json) {
  MC_TRY(const Layout layout, find_layout(), "task list");
  if (json) return print_rows(suite.empty() ? "tasks" : suite, layout);
  if (!suite.empty()) return print_tasks(suite, layout);
  print_suites(layout);
  return ok();
}

// ---- check --------------------------------------------------------------------------------------

// Adds the tasks of a file or folder, or one task in a form that --task accepts.
Status add_tasks(const std::string& spec, const task::Roots& roots,
                 std::vector<task::Task>& tasks) {
  std::error_code ignored;
  const fs::path path = spec;
  if (fs::is_directory(path, ignored) || path.extension() == ".jsonl") {
    MC_TRY(std::vector<task::Task> suite, task::load_suite(path, path.stem().string()), spec);
    std::ranges::move(suite, std::back_inserter(tasks));
    return ok();
  }
  MC_TRY(tasks.emplace_back(), find_task(spec, roots), "task");
  return ok();
}

// The grade of a task.  It is "weak" if other harnesses accept wrong answers that this one rejects.
Checked graded(const task::Task& task, eval::Pipeline::Hygiene found) {
  Checked checked{task.id, std::move(found.grade.grade), std::move(found.grade.reasons),
                  std::move(found.shape)};
  if (found.as_initialised.empty() || checked.grade == kTrivial) return checked;
  checked.grade = "weak";
  checked.reasons.push_back(
      fmt::format("with weights as the task makes them a trial is passed by {}",
                  fmt::join(found.as_initialised, ", ")));
  return checked;
}

Checked check_one(eval::Pipeline& pipeline, const task::Task& task) {
  if (const Status status = pipeline.check_task(task); !status) {
    const bool is_invalid = status.error().code == ErrorCode::kInvalidInput;
    return {task.id, is_invalid ? kInvalid : kFailed, {status.error().message}, ""};
  }
  auto result = pipeline.grade_task(task);
  if (!result) return {task.id, kFailed, {result.error().message}, ""};
  if (auto* found = std::get_if<eval::Pipeline::Hygiene>(&*result)) {
    return graded(task, std::move(*found));
  }
  Checked checked{task.id, kUnsupported, {}, ""};
  for (const task::RuleFinding& why : std::get<task::Unsupported>(*result).constructs) {
    checked.reasons.push_back(why.message);
  }
  return checked;
}

std::string json_line(const Checked& checked) {
  const nlohmann::ordered_json json = {{"task", checked.task},
                                       {"grade", checked.grade},
                                       {"reasons", checked.reasons},
                                       {"shape", checked.shape}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::string table(const std::vector<Checked>& all) {
  size_t width = 4;
  for (const Checked& checked : all) width = std::max(width, checked.task.size());
  std::string out = fmt::format("{:{}}  {:11}  {:7}  why\n", "task", width, "grade", "sizes");
  for (const Checked& checked : all) {
    std::string line = fmt::format("{:{}}  {:11}  {:7}  {}", checked.task, width, checked.grade,
                                   checked.shape, fmt::join(checked.reasons, "; "));
    line = one_line(std::move(line));
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string summary(const std::vector<Checked>& all) {
  std::vector<std::string> parts;
  for (const std::string grade : {"good", "weak", kTrivial, kUnsupported, kInvalid, kFailed}) {
    const auto num = std::ranges::count(all, grade, &Checked::grade);
    if (num > 0) parts.push_back(fmt::format("{} {}", num, grade));
  }
  return fmt::format("{} task{}: {}\n", all.size(), all.size() == 1 ? "" : "s",
                     fmt::join(parts, ", "));
}

int exit_code_of(const std::vector<Checked>& all) {
  const auto has = [&](const char* grade) {
    return std::ranges::find(all, grade, &Checked::grade) != all.end();
  };
  if (has(kTrivial) || has(kUnsupported) || has(kInvalid)) return kExitFound;
  return has(kFailed) ? kExitMachine : kExitDone;
}

Result<int> run_check(EvalArguments& arguments, const std::vector<std::string>& specs,
                      const CLI::App& command) {
  MC_TRY_VOID(settle(arguments, command), "task check");
  MC_TRY(const Layout layout, find_layout(), "task check");
  std::vector<task::Task> tasks;
  for (const std::string& spec : specs) {
    if (const Status added = add_tasks(spec, roots_of(layout), tasks); !added) {
      return added.error();
    }
  }
  ProgressBar bar(tasks.size());
  MC_TRY(auto pipeline,
         eval::Pipeline::create(arguments.options, [&](std::string_view step) { bar.note(step); }),
         "task check");
  std::vector<Checked> all(tasks.size());
  for_each_index(tasks.size(), arguments.jobs, [&](size_t i) {
    all[i] = check_one(*pipeline, tasks[i]);
    bar.advance(tasks[i].id);
  });
  bar.finish();
  if (arguments.json) {
    for (const Checked& checked : all) std::cout << json_line(checked);
  } else {
    std::cout << table(all) << summary(all);
  }
  return exit_code_of(all);
}

}  // namespace

void add_task(CLI::App& app, int& exit_code) {
  CLI::App* family = app.add_subcommand("task", "Look at tasks");
  family->require_subcommand(1);
  auto suite = std::make_shared<std::string>();
  CLI::App* list =
      family->add_subcommand("list", "The suites that --suite takes, or the tasks of one of them");
  list->add_option("suite", *suite, "tasks, kernelbench, or a path");
  auto json = std::make_shared<bool>();
  list->add_flag("--json", *json, "Print id, code and prompt of each task as JSON Lines");
  list->footer(
      "Example:\n"
      "  musacoder task list tasks");
  list->callback([suite, json, &exit_code] {
    const Status status = run_list(*suite, *json);
    exit_code = status ? kExitDone : report_error(status.error());
  });
  add_task_operators(*family, exit_code);
  add_task_export(*family, exit_code);
  auto arguments = std::make_shared<EvalArguments>();
  auto specs = std::make_shared<std::vector<std::string>>();
  CLI::App* command = family->add_subcommand(
      "check", "Which answers pass a task that compute nothing: its grade, and the reason");
  command
      ->add_option("task", *specs,
                   "Tasks: .py files, .jsonl files, folders, suite:level/id, or family/name")
      ->required();
  add_machine(*command, *arguments);
  add_correctness(*command, arguments->options.correctness);
  command->add_option("--seed", arguments->seed, "Seed of all inputs (default: secret)");
  command->add_flag("--json", arguments->json, "Print the grades as JSON Lines");
  command->footer(
      "Examples:\n"
      "  musacoder task check reduction/row_sum\n"
      "  musacoder task check my_tasks/ --jobs 2\n"
      "Exit code: 0 all are good or weak; 3 a task is trivial or cannot be judged.");
  command->callback([arguments, specs, command, &exit_code] {
    const Result<int> code = run_check(*arguments, *specs, *command);
    exit_code = code ? *code : report_error(code.error());
  });
}

}  // namespace mc::cli
