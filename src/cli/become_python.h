// SPDX-License-Identifier: Apache-2.0
//
// The Python programs that take this process's place: serve, mcp, import and task export.
#ifndef MC_CLI_BECOME_PYTHON_H_
#define MC_CLI_BECOME_PYTHON_H_

#include <string>
#include <vector>

#include "core/result.h"

namespace mc::cli {

// Runs a program by the Python that judges.  words: a file or "-m" and a module, then arguments.
// Returns only where Python does not start.
Error become_python(std::vector<std::string> words);

}  // namespace mc::cli

#endif  // MC_CLI_BECOME_PYTHON_H_
