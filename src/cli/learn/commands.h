// SPDX-License-Identifier: Apache-2.0
//
// The subcommands of musacoder-learn.  Each registers its options with the parser, and a callback
// that runs it and stores the exit code: 0 success, 1 a failure of the machine, 2 invalid input.
#ifndef MC_CLI_LEARN_COMMANDS_H_
#define MC_CLI_LEARN_COMMANDS_H_

#include <CLI/CLI.hpp>

#include "cli/program.h"
#include "core/result.h"

namespace mc::learn {

using cli::kExitDone;
using cli::kExitInput;
using cli::kExitMachine;

void add_init(CLI::App& app, int& exit_code);
void add_sft(CLI::App& app, int& exit_code);
void add_rft(CLI::App& app, int& exit_code);
void add_rl(CLI::App& app, int& exit_code);
void add_generate(CLI::App& app, int& exit_code);
void add_tokenize(CLI::App& app, int& exit_code);

// Prints the error as one line on standard error, and returns its exit code.
inline int report_error(const Error& error) { return cli::report_error("musacoder-learn", error); }

// The exit code of a command, whose error is printed.
inline int code_of(const Status& status) {
  return status ? kExitDone : report_error(status.error());
}

}  // namespace mc::learn

#endif  // MC_CLI_LEARN_COMMANDS_H_
