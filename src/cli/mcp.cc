// SPDX-License-Identifier: Apache-2.0
//
// The command `musacoder mcp`: replaces this process by python/musacoder/mcp.py (docs/mcp.md). Its
// options are those of the verifier.
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/python.h"

namespace mc::cli {
namespace {

// Replaces this process; returns only if Python does not start.
Error start(std::vector<std::string> options) {
  options.insert(options.begin(), "--");
  return exec_python_program("musacoder/mcp.py", options);
}

}  // namespace

void add_mcp(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "mcp", "Tools for coding agents, over standard input and output; options are those of eval");
  command->allow_extras();
  command->fallthrough(false);  // Unknown options belong to the verifier.
  command->footer(
      "It speaks the Model Context Protocol, and judges by the services of $MUSACODER_URL where "
      "that is set.\n"
      "Example:\n"
      "  musacoder mcp --backend cpu --jobs 2");
  command->callback(
      [command, &exit_code] { exit_code = report_error(start(command->remaining())); });
}

}  // namespace mc::cli
