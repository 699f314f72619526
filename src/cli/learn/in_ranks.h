// SPDX-License-Identifier: Apache-2.0
//
// Runs a command in several processes: those that torchrun started, or those that --processes
// starts on this machine.
#ifndef MC_CLI_LEARN_IN_RANKS_H_
#define MC_CLI_LEARN_IN_RANKS_H_

#include <functional>

#include <CLI/CLI.hpp>

#include "core/result.h"
#include "train/ranks.h"

namespace mc::learn {

// --processes
void add_processes(CLI::App& command, int& processes);

// Calls `body` in each rank and returns the exit code.  Only the first rank reports an error that
// occurred in all ranks.  If a rank fails or is killed, the others are ended, and the parent
// process reports a kill in one line. REQUIRES: this process has one thread.
int run_in_ranks(int processes, const std::function<Status(const train::RankSetup&)>& body);

}  // namespace mc::learn

#endif  // MC_CLI_LEARN_IN_RANKS_H_
