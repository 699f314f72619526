// SPDX-License-Identifier: Apache-2.0
#include "cli/program.h"

#include <algorithm>
#include <iostream>
#include <optional>
#include <vector>

#include "cli/suggest.h"
#include "core/check.h"
#include "core/file.h"

namespace mc::cli {
namespace {

// The message for the first word that is no subcommand, where a subcommand must be.  A subcommand
// may have its own ones, such as `task check`.
std::optional<std::string> unknown_command(const CLI::App& app,
                                           const std::vector<std::string>& words) {
  const CLI::App* parent = &app;
  for (size_t i = 0; i < words.size() && parent != nullptr; ++i) {
    const CLI::App* next = nullptr;
    std::vector<std::string> names;
    for (const CLI::App* command : parent->get_subcommands({})) {
      names.push_back(command->get_name());
      if (command->get_name() == words[i]) next = command;
    }
    if (names.empty()) break;
    const auto begin = words.begin() + static_cast<std::ptrdiff_t>(i);
    if (auto wrong = unknown_subcommand({begin, words.end()}, names)) return wrong;
    parent = next;
  }
  return std::nullopt;
}

}  // namespace

int report_error(std::string_view program, const Error& error) {
  std::string line = error.message;
  std::ranges::replace_if(line, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  std::cerr << program << ": " << line << std::endl;
  const bool is_input =
      error.code == ErrorCode::kInvalidInput || error.code == ErrorCode::kNotFound;
  return is_input ? kExitInput : kExitMachine;
}

int run_command_line(CLI::App& app, const std::string& program, int argc, const char* const* argv,
                     const int& exit_code) {
  MC_CHECK(argc > 0);
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (const auto wrong = unknown_command(app, words)) return report_error(program, invalid(*wrong));
  int code = kExitDone;
  try {
    app.parse(argc, argv);
    code = exit_code;
  } catch (const CLI::ParseError& wrong) {
    const bool is_help = wrong.get_exit_code() == 0;  // --help, --version
    if (!is_help) return report_error(program, invalid(advice_for(wrong, app, program, words)));
    app.exit(wrong);
  }
  const Status printed = flush_standard_output();
  return printed ? code : report_error(program, printed.error());
}

}  // namespace mc::cli
