// SPDX-License-Identifier: Apache-2.0
//
// Starts the Python programs of this installation with the Python of the judge: in place of this
// process (serve, mcp, import, workspace, task export), or as a child.
#ifndef MC_CLI_PYTHON_H_
#define MC_CLI_PYTHON_H_

#include <optional>
#include <string>
#include <vector>

#include "core/layout.h"
#include "core/result.h"

namespace mc::cli {

// Replaces this process by a Python program.  `words` are a file, or "-m" and a module, and then
// the arguments; `environment` are its variables ("NAME=value") in place of this process's.
// Returns only if Python does not start.
Error exec_python(std::vector<std::string> words,
                  std::optional<std::vector<std::string>> environment = std::nullopt);

// The same for a file below the installation's folder `python`, which receives the path of
// `musacoder` as --program before the other arguments.
Error exec_python_program(const char* file, const std::vector<std::string>& arguments);

// Runs a module below the installation's folder `python` until it ends, and returns its output.
// kUnavailable, with the end of its messages, if it fails.
Result<std::string> run_module(const Layout& layout, const std::string& module,
                               const std::vector<std::string>& arguments);

// Runs a module of the Python package `report` and prints its output.  If the last line of a
// failure is "error: …", this is an error that the user can correct.  `what` names the output in
// error messages.
Status run_report_module(const std::string& module, const std::vector<std::string>& arguments,
                         const std::string& what);

}  // namespace mc::cli

#endif  // MC_CLI_PYTHON_H_
