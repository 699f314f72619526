// SPDX-License-Identifier: Apache-2.0
//
// The parts that the programs musacoder and musacoder-learn share: exit codes, the line of an
// error, and the run of a command line.
#ifndef MC_CLI_PROGRAM_H_
#define MC_CLI_PROGRAM_H_

#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "core/result.h"

namespace mc::cli {

inline constexpr int kExitDone = 0;
inline constexpr int kExitMachine = 1;
inline constexpr int kExitInput = 2;

// Prints "<program>: <message>" as one line on standard error, and returns the error's exit code.
int report_error(std::string_view program, const Error& error);

// Parses the command line, runs its command, and flushes standard output.  Returns the exit code:
// that of the command (`exit_code`, which its callback sets), kExitInput with one line of advice
// for a command line that cannot be parsed, or kExitMachine if standard output cannot be written.
// REQUIRES: all commands have been added to `app`.
int run_command_line(CLI::App& app, const std::string& program, int argc, const char* const* argv,
                     const int& exit_code);

}  // namespace mc::cli

#endif  // MC_CLI_PROGRAM_H_
