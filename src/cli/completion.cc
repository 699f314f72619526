// SPDX-License-Identifier: Apache-2.0
//
// The command `musacoder completion`: prints a script by which a shell completes subcommands,
// options and the words that options take; other words are completed as file names.
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/commands.h"
#include "cli/defaults.h"
#include "cli/numbers.h"

namespace mc::cli {
namespace {

// The words that may follow a subcommand.
struct Words {
  std::vector<std::string> commands;  // Subcommands of `task`: list, check, …
  // The options of the subcommand, including those of its own subcommands.
  std::vector<const CLI::Option*> options;
};

Words words_of(const CLI::App& command) {
  Words words;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_lnames().empty()) words.options.push_back(option);
  }
  for (const CLI::App* inner : command.get_subcommands({})) {
    words.commands.push_back(inner->get_name());
    for (const CLI::Option* option : words_of(*inner).options) words.options.push_back(option);
  }
  return words;
}

// The words that an option takes, separated by spaces; "" if it takes other values.
std::string choices_of(const CLI::Option& option) {
  std::string text = value_name(option);
  if (text.find('|') == std::string::npos) return "";
  for (char& c : text) c = c == '|' ? ' ' : c;
  return text;
}

std::string bash_script(const CLI::App& app) {
  std::string cases;
  std::string choices;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) {
    const Words words = words_of(*command);
    std::vector<std::string> all = words.commands;
    for (const CLI::Option* option : words.options) {
      const std::string name = "--" + option->get_lnames().front();
      all.push_back(name);
      if (const std::string some = choices_of(*option); !some.empty()) {
        choices += fmt::format("    \"{} {}\") words=\"{}\" ;;\n", command->get_name(), name, some);
      }
    }
    names.push_back(command->get_name());
    cases += fmt::format("    {}) words=\"{}\" ;;\n", command->get_name(), fmt::join(all, " "));
  }
  return fmt::format(
      "_musacoder() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words=\n"
      "  local command=${{COMP_WORDS[1]}}\n"
      "  case $command in\n{}  esac\n"
      "  case \"$command $before\" in\n{}  esac\n"
      "  ((COMP_CWORD == 1)) && words=\"{}\"\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
      "}}\n"
      "complete -o default -F _musacoder musacoder\n",
      cases, choices, fmt::join(names, " "));
}

// The text in single quotes.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("\\'") : std::string(1, c);
  return out + "'";
}

std::string fish_script(const CLI::App& app) {
  std::string out;
  for (const CLI::App* command : app.get_subcommands({})) {
    const std::string& name = command->get_name();
    out += fmt::format("complete -c musacoder -n __fish_use_subcommand -a {} -d {}\n", name,
                       quoted(command->get_description()));
    const Words words = words_of(*command);
    const std::string seen = fmt::format("-n '__fish_seen_subcommand_from {}'", name);
    if (!words.commands.empty()) {
      out +=
          fmt::format("complete -c musacoder {} -a '{}'\n", seen, fmt::join(words.commands, " "));
    }
    for (const CLI::Option* option : words.options) {
      const std::string choices = choices_of(*option);
      const std::string values = option->get_items_expected_max() == 0 ? ""
                                 : choices.empty()                     ? " -r"
                                                   : fmt::format(" -xa '{}'", choices);
      out += fmt::format("complete -c musacoder {} -l {}{} -d {}\n", seen,
                         option->get_lnames().front(), values, quoted(option->get_description()));
    }
  }
  return out;
}

}  // namespace

void add_shell_completion(CLI::App& app, int& exit_code) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print a script that completes commands");
  command->add_option("shell", *shell, "The shell that reads it")
      ->required()
      ->check(one_of({"bash", "zsh", "fish"}));
  command->footer(
      "Examples:\n"
      "  source <(musacoder completion bash)      # in ~/.bashrc; zsh alike in ~/.zshrc\n"
      "  musacoder completion fish > ~/.config/fish/completions/musacoder.fish");
  command->callback([shell, &app, &exit_code] {
    if (*shell == "zsh") std::cout << "autoload -U +X bashcompinit && bashcompinit\n";
    std::cout << (*shell == "fish" ? fish_script(app) : bash_script(app));
    exit_code = kExitDone;
  });
}

}  // namespace mc::cli
