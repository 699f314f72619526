// SPDX-License-Identifier: Apache-2.0
//
// A command that several processes run together: those that torchrun started, or that --processes
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

// Calls body in each rank; returns the exit code.  The first rank alone reports what went wrong in
// all of them.  A rank that fails or is killed ends the others, and the process that started them
// reports a kill in one line.
// REQUIRES: this process has one thread.
int run_in_ranks(int processes, const std::function<Status(const train::RankPlace&)>& body);

}  // namespace mc::learn

#endif  // MC_CLI_LEARN_IN_RANKS_H_
