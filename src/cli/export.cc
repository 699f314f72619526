// SPDX-License-Identifier: Apache-2.0
//
// The command `musacoder task export`: replaces this process by
// python/musacoder/harbor/__main__.py.
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/numbers.h"
#include "cli/python.h"

namespace mc::cli {
namespace {

struct ExportArguments {
  std::string suite = "tasks";
  std::string harbor;
  std::string solutions;
};

// Replaces this process; returns only if Python does not start.
Error start(const ExportArguments& arguments) {
  return exec_python_program(
      "musacoder/harbor/__main__.py",
      {"--out", arguments.harbor, "--solutions", arguments.solutions, "--", arguments.suite});
}

}  // namespace

void add_task_export(CLI::App& family, int& exit_code) {
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* command =
      family.add_subcommand("export", "Tasks in the form of other projects, judged by a service");
  command->add_option("suite", arguments->suite, "tasks, kernelbench, or a path");
  command->add_option("--harbor", arguments->harbor, "Folder for Harbor's tasks (docs/trainers.md)")
      ->required()
      ->check(kOutputFolder);
  command->add_option("--solutions", arguments->solutions,
                      "Folder of right answers, FAMILY/NAME.py: the oracle's");
  command->footer(
      "Example:\n"
      "  musacoder task export tasks --harbor harbor_tasks");
  command->callback([arguments, &exit_code] { exit_code = report_error(start(*arguments)); });
}

}  // namespace mc::cli
