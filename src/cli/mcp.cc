// SPDX-License-Identifier: Apache-2.0
//
// The command `musacoder mcp`: replaces this process by python/musacoder/mcp.py (docs/mcp.md). Its
// options are those of the verifier.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/become_python.h"
#include "cli/commands.h"
#include "core/layout.h"

namespace mc::cli {
namespace {

// Replaces this process; returns only if Python does not start.
Error start(const std::vector<std::string>& options) {
  const Result<Layout> layout = find_layout();
  if (!layout) return layout.error();
  std::vector<std::string> words = {(layout->share("python") / "musacoder/mcp.py").string(),
                                    "--program", (layout->prefix / "bin/musacoder").string(), "--"};
  words.insert(words.end(), options.begin(), options.end());
  return become_python(std::move(words));
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
