// SPDX-License-Identifier: Apache-2.0
//
// A last line for who ends the program by Ctrl-C, or by SIGTERM or SIGHUP.
//
//   print_when_ended("musacoder: interrupted; the verdicts so far are in out.jsonl.part");
#ifndef MC_CLI_INTERRUPT_H_
#define MC_CLI_INTERRUPT_H_

#include <string_view>

namespace mc::cli {

// Prints `line`, in place of the one before, on standard error when such a signal ends the program;
// nothing where it is "".  The program still ends by the signal.  Not thread-safe.
void print_when_ended(std::string_view line);

}  // namespace mc::cli

#endif  // MC_CLI_INTERRUPT_H_
