// SPDX-License-Identifier: Apache-2.0
//
// Replaces this process by a Python program: serve, mcp, import and task export.
#ifndef MC_CLI_BECOME_PYTHON_H_
#define MC_CLI_BECOME_PYTHON_H_

#include <string>
#include <vector>

#include "core/result.h"

namespace mc::cli {

// Runs a program with the Python of the judge.  `words` are a file, or "-m" and a module, and then
// the arguments. Returns only if Python does not start.
Error become_python(std::vector<std::string> words);

}  // namespace mc::cli

#endif  // MC_CLI_BECOME_PYTHON_H_
