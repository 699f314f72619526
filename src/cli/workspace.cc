// SPDX-License-Identifier: Apache-2.0
//
// The command `musacoder workspace`: replaces this process by
// python/musacoder/workspace/__main__.py (docs/workspace.md).
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/python.h"

namespace mc::cli {
namespace {

struct WorkspaceArguments {
  std::string task;
  std::string folder;
  bool judge = false;
};

// Replaces this process; returns only if Python does not start.
Error start(const WorkspaceArguments& arguments) {
  std::vector<std::string> words = {"--", arguments.task, arguments.folder};
  if (arguments.judge) words.insert(words.begin(), "--judge");
  return exec_python_program("musacoder/workspace/__main__.py", words);
}

}  // namespace

void add_workspace(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<WorkspaceArguments>();
  CLI::App* command = app.add_subcommand(
      "workspace", "A folder in which an agent writes one kernel, of several files, and judges it");
  command->add_option("task", arguments->task, "reduction/row_sum, or a file of yours (.py)")
      ->required();
  command->add_option("folder", arguments->folder, "Where it is made")->required();
  command->add_flag("--judge", arguments->judge,
                    "Judge what an agent left in the folder, if it changed nothing but answer/");
  command->footer(
      "Example:\n"
      "  musacoder workspace reduction/row_sum work\n"
      "  cd work && ./judge\n"
      "Exit code of --judge: 0 the answer passes, 1 there is no verdict, 2 the task or the judge "
      "was changed, 3 the answer fails.");
  command->callback([arguments, &exit_code] { exit_code = report_error(start(*arguments)); });
}

}  // namespace mc::cli
