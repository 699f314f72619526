// SPDX-License-Identifier: Apache-2.0
//
// The command `musacoder mcp`: python/musacoder/mcp.py takes this process's place (docs/mcp.md).
// Options are those of the verifier.
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>
#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "compile/pytorch.h"
#include "core/fd.h"
#include "core/layout.h"

namespace mc::cli {
namespace {

// Returns only where Python does not start.
Error start(const std::vector<std::string>& options) {
  const Result<Layout> layout = find_layout();
  if (!layout) return layout.error();
  const std::string python = compile::default_python();
  std::vector<std::string> words = {python, "-P",
                                    (layout->share("python") / "musacoder/mcp.py").string(),
                                    "--program", (layout->prefix / "bin/musacoder").string(), "--"};
  words.insert(words.end(), options.begin(), options.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(python.c_str(), argv.data());
  return system_error(ErrorCode::kUnavailable, "cannot start " + python);
}

}  // namespace

void add_mcp(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "mcp", "Tools for coding agents, over standard input and output; options are those of eval");
  command->allow_extras();
  command->fallthrough(false);  // An option that it does not know is the verifier's.
  command->footer(
      "It speaks the Model Context Protocol, and judges by the services of $MUSACODER_URL where "
      "that is set.\n"
      "Example:\n"
      "  musacoder mcp --backend cpu --jobs 2");
  command->callback(
      [command, &exit_code] { exit_code = report_error(start(command->remaining())); });
}

}  // namespace mc::cli
