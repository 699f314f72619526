// SPDX-License-Identifier: Apache-2.0
//
// The commands `musacoder import` and `musacoder task operators`: replace this process by
// python/harness/importer, which parses untrusted texts and executes them only in the sandbox.
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/numbers.h"
#include "cli/python.h"
#include "core/layout.h"

namespace mc::cli {
namespace {

struct ImportArguments {
  std::vector<std::string> paths;
  std::vector<std::string> suites;
  std::string out;
  int jobs = 1;
  int limit = 0;
};

// The sandboxed processes are forks of the importer, so imported code can read its environment: it
// has none of the user's variables but these.
std::vector<std::string> environment(const Layout& layout) {
  std::vector<std::string> variables = {"PYTHONPATH=" + layout.share("python").string(),
                                        "LC_ALL=C.UTF-8"};
  for (const char* name : {"PATH", "HOME", "LD_LIBRARY_PATH", "TMPDIR"}) {
    const char* value = std::getenv(name);
    if (value != nullptr) variables.push_back(std::string(name) + "=" + value);
  }
  return variables;
}

// Replaces this process; returns only if Python does not start.
Error start(const std::string& name, const ImportArguments& arguments) {
  const Result<Layout> layout = find_layout();
  if (!layout) return layout.error();
  std::vector<std::string> words = {"-m",
                                    "harness.importer",
                                    "--sandbox-lib",
                                    layout->library("libmc_sandbox.so").string(),
                                    "--jobs",
                                    std::to_string(arguments.jobs),
                                    name,
                                    "--limit",
                                    std::to_string(arguments.limit)};
  if (!arguments.out.empty()) words.insert(words.end(), {"--out", arguments.out});
  for (const std::string& suite : arguments.suites) {
    words.insert(words.end(), {"--kernelbench", suite});
  }
  words.emplace_back("--");
  words.insert(words.end(), arguments.paths.begin(), arguments.paths.end());
  return exec_python(std::move(words), environment(*layout));
}

void add_jobs(CLI::App& command, ImportArguments& arguments) {
  command.add_option("--jobs,-j", arguments.jobs, "Sandboxes at once")->check(whole_range(1, 64));
}

}  // namespace

void add_import(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ImportArguments>();
  CLI::App* command = app.add_subcommand(
      "import", "Make tasks of modules that others wrote: rows of a data set, or repositories");
  command
      ->add_option("path", arguments->paths,
                   "Folders of Python, .py files, and .jsonl or .parquet files with python_code "
                   "or code in each row; imports between them are followed")
      ->required();
  command->add_option("--out,-o", arguments->out, "Folder for tasks/, rl.jsonl and import.jsonl")
      ->required()
      ->check(kOutputFolder);
  command->add_option("--kernelbench", arguments->suites,
                      "Tasks that models are evaluated on: what is too near to one is refused");
  command->add_option("--limit", arguments->limit, "Of the modules of each path (0: all)")
      ->check(whole_range(0, 10'000'000));
  add_jobs(*command, *arguments);
  command->footer(
      "Example:\n"
      "  musacoder import path/to/repository rows.jsonl --out imported");
  command->callback(
      [arguments, &exit_code] { exit_code = report_error(start("import", *arguments)); });
}

void add_task_operators(CLI::App& family, int& exit_code) {
  auto arguments = std::make_shared<ImportArguments>();
  CLI::App* command = family.add_subcommand(
      "operators", "The operators of tasks as PyTorch dispatches them, by class");
  command->add_option("task", arguments->paths, "Folders of tasks, .py files, and .jsonl files")
      ->required();
  command->add_option("--out,-o", arguments->out, "A row for each task, as JSON Lines")
      ->check(kOutputFile);
  add_jobs(*command, *arguments);
  command->footer(
      "Example:\n"
      "  musacoder task operators tasks/");
  command->callback(
      [arguments, &exit_code] { exit_code = report_error(start("operators", *arguments)); });
}

}  // namespace mc::cli
