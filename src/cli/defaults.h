// SPDX-License-Identifier: Apache-2.0
//
// Defaults in the help of a command: each option shows its own, but for an empty list, and for one
// whose text describes the default.
#ifndef MC_CLI_DEFAULTS_H_
#define MC_CLI_DEFAULTS_H_

#include <string>

#include <CLI/CLI.hpp>

namespace mc::cli {

// REQUIRES: no option has been added.
inline void show_defaults(CLI::App& app) { app.option_defaults()->always_capture_default(); }

// REQUIRES: all options of all subcommands have been added.
inline void hide_described_defaults(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    // The default text of an option whose value may be left out is the value that it then has.
    if (option->get_expected_min() == 0) continue;
    const bool is_described = option->get_description().find("default:") != std::string::npos;
    if (is_described || option->get_default_str() == "[]") option->default_str("");
  }
  for (CLI::App* command : app.get_subcommands({})) hide_described_defaults(*command);
}

}  // namespace mc::cli

#endif  // MC_CLI_DEFAULTS_H_
