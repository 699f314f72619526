// SPDX-License-Identifier: Apache-2.0
//
// A last line for the user when Ctrl-C, SIGTERM or SIGHUP ends the program.
//
//   print_when_ended("musacoder: interrupted; the verdicts so far are in out.jsonl.part");
#ifndef MC_CLI_INTERRUPT_H_
#define MC_CLI_INTERRUPT_H_

#include <string_view>

namespace mc::cli {

// Sets the line that is printed on standard error when such a signal ends the program; "" prints
// nothing.  The line replaces an earlier one.  The program still ends by the signal.  Not
// thread-safe.
void print_when_ended(std::string_view line);

}  // namespace mc::cli

#endif  // MC_CLI_INTERRUPT_H_
