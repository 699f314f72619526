// SPDX-License-Identifier: Apache-2.0
//
// Starts the program musacoder-learn in the folder of this one, for all work that needs libtorch.
#ifndef MC_CLI_LEARNER_H_
#define MC_CLI_LEARNER_H_

#include <string>
#include <vector>

#include "core/layout.h"
#include "core/result.h"

namespace mc::cli {

// Runs musacoder-learn with these arguments until it ends; it inherits standard output.
// kInvalidInput if the program is missing (for example in an installation), or if it printed an
// error and ended with 2; kUnavailable if it was killed.
Status run_learner(const Layout& layout, const std::vector<std::string>& arguments);

// Replaces this process by musacoder-learn; returns only if it does not start.
Error exec_learner(const std::vector<std::string>& arguments);

// The arguments for execv, which point into `words`.
std::vector<char*> pointers_to(std::vector<std::string>& words);

}  // namespace mc::cli

#endif  // MC_CLI_LEARNER_H_
