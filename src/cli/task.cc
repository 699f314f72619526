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
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/judging.h"
#include "cli/progress.h"
#include "cli/task_grades.h"
#include "core/layout.h"
#include "eval/pipeline.h"
#include "sample/suite.h"
#include "task/suite.h"

namespace mc::cli {
namespace {

namespace fs = std::filesystem;

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

GradedTask check_one(eval::Pipeline& pipeline, const task::Task& task) {
  if (const Status status = pipeline.check_task(task); !status) {
    const bool is_invalid = status.error().code == ErrorCode::kInvalidInput;
    return {task.id, is_invalid ? kInvalid : kFailed, {status.error().message}, ""};
  }
  auto result = pipeline.grade_task(task);
  if (!result) return {task.id, kFailed, {result.error().message}, ""};
  if (auto* found = std::get_if<eval::Pipeline::Hygiene>(&*result)) {
    return graded(task, std::move(*found));
  }
  GradedTask checked{task.id, kUnsupported, {}, ""};
  for (const task::RuleFinding& why : std::get<task::Unsupported>(*result).constructs) {
    checked.reasons.push_back(why.message);
  }
  return checked;
}

Result<int> run_check(EvalArguments& arguments, const std::vector<std::string>& specs,
                      const CLI::App& command) {
  MC_TRY_VOID(resolve_options(arguments, command), "task check");
  MC_TRY(const Layout layout, find_layout(), "task check");
  std::vector<task::Task> tasks;
  for (const std::string& spec : specs) {
    if (const Status added = add_tasks(spec, roots_of(layout), tasks); !added) {
      return added.error();
    }
  }
  ProgressBar bar(tasks.size());
  MC_TRY(auto pipeline, open_pipeline(arguments.options, bar), "task check");
  std::vector<GradedTask> all(tasks.size());
  for_each_index(tasks.size(), arguments.jobs, [&](size_t i) {
    all[i] = check_one(*pipeline, tasks[i]);
    bar.advance(tasks[i].id);
  });
  bar.finish();
  if (arguments.json) {
    for (const GradedTask& checked : all) std::cout << json_line(checked);
  } else {
    std::cout << grades_table(all) << grades_summary(all);
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
  list->callback([suite, json, &exit_code] { exit_code = code_of(run_list(*suite, *json)); });
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
  add_seed(*command, *arguments);
  command->add_flag("--json", arguments->json, "Print the grades as JSON Lines");
  command->footer(
      "Examples:\n"
      "  musacoder task check reduction/row_sum\n"
      "  musacoder task check my_tasks/ --jobs 2\n"
      "Exit code: 0 all are good or weak; 3 a task is trivial or cannot be judged.");
  command->callback([arguments, specs, command, &exit_code] {
    exit_code = code_of(run_check(*arguments, *specs, *command));
  });
}

}  // namespace mc::cli
