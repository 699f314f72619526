// SPDX-License-Identifier: Apache-2.0
//
// The commands init, sft, rft, rl, generate and tokenize: replace this process by musacoder-learn,
// the program in the same folder that links PyTorch's libraries.
#include <array>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/learner.h"

namespace mc::cli {
namespace {

struct LearnerCommand {
  const char* name;
  const char* what;
};
constexpr std::array kCommands = {
    LearnerCommand{"init", "Make a model with random weights"},
    LearnerCommand{"sft", "Train a model on conversations"},
    LearnerCommand{"rft", "Make data of a model's own answers that passed"},
    LearnerCommand{"rl", "Train a model on verdicts of its own answers"},
    LearnerCommand{"generate", "Answer prompts with a model"},
    LearnerCommand{"tokenize", "Print the tokens of texts"},
};

}  // namespace

void add_learn(CLI::App& app, int& exit_code) {
  for (const LearnerCommand& forwarded : kCommands) {
    CLI::App* command = app.add_subcommand(forwarded.name, forwarded.what);
    command->set_help_flag();  // The other program prints the help.
    command->prefix_command();
    command->fallthrough(false);  // Unknown options belong to the other program.
    command->callback([command, &exit_code] {
      std::vector<std::string> words = command->remaining();
      words.insert(words.begin(), command->get_name());
      exit_code = report_error(exec_learner(words));
    });
  }
}

}  // namespace mc::cli
