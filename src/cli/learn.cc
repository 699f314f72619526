// SPDX-License-Identifier: Apache-2.0
//
// The commands init, sft, rft, rl, generate and tokenize: replace this process by musacoder-learn,
// the program in the same folder that links PyTorch's libraries.
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include <unistd.h>

#include "cli/commands.h"
#include "cli/learner.h"
#include "compile/pytorch.h"
#include "core/fd.h"
#include "core/layout.h"

namespace mc::cli {
namespace {

struct Forwarded {
  const char* name;
  const char* what;
};
constexpr std::array kForwarded = {
    Forwarded{"init", "Make a model with random weights"},
    Forwarded{"sft", "Train a model on conversations"},
    Forwarded{"rft", "Make data of a model's own answers that passed"},
    Forwarded{"rl", "Train a model on verdicts of its own answers"},
    Forwarded{"generate", "Answer prompts with a model"},
    Forwarded{"tokenize", "Print the tokens of texts"},
};

// Replaces this process; returns only if the program does not start.
Error start(const std::string& name, const std::vector<std::string>& arguments) {
  const Result<Layout> layout = find_layout();
  if (!layout) return layout.error();
  const Result<std::string> program = find_learner(*layout);
  if (!program) return program.error();
  std::vector<std::string> words = {*program, name};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  // This Python renders a model's own chat template.
  ::setenv("MC_PYTHON", compile::default_python().c_str(), /*overwrite=*/0);
  ::execv(program->c_str(), argv.data());
  return system_error(ErrorCode::kUnavailable, "cannot start " + *program);
}

}  // namespace

void add_learn(CLI::App& app, int& exit_code) {
  for (const Forwarded& forwarded : kForwarded) {
    CLI::App* command = app.add_subcommand(forwarded.name, forwarded.what);
    command->set_help_flag();  // The other program prints the help.
    command->prefix_command();
    command->fallthrough(false);  // Unknown options belong to the other program.
    command->callback([command, &exit_code] {
      exit_code = report_error(start(command->get_name(), command->remaining()));
    });
  }
}

}  // namespace mc::cli
