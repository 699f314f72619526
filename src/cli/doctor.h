// SPDX-License-Identifier: Apache-2.0
//
// The command doctor: reports what this machine can do and what it lacks, with the exact command to
// install it.
//
// Facts are found by small functions that examine the machine and change nothing.  The report and
// the exit code depend on the facts alone, so they can be tested without a machine that lacks
// something.
// Example:
//   const std::vector<Fact> facts = probe_machine();
//   std::cout << doctor_report(facts);
//   return can_judge(facts) ? kExitDone : kExitMachine;
#ifndef MC_CLI_DOCTOR_H_
#define MC_CLI_DOCTOR_H_

#include <span>
#include <string>
#include <vector>

#include "core/fact.h"
#include "eval/machine.h"

namespace mc::cli {

// Collects all facts.  It takes a few seconds; if the GPU's driver hangs, as long as the limit in
// cuda_driver.h.
std::vector<Fact> probe_machine();

// The report: sections in order of first appearance, one line for each fact, and the remedy below
// missing items.  The end names what can be judged here, or the commands to run first.
std::string doctor_report(const std::vector<Fact>& facts);

// The findings of each backend, and for each backend a fact of the section "backends": whether it
// can judge here.  `common` contains the needs of all backends.  Needs of a single backend are
// never kMissing.
std::vector<Fact> backend_facts(std::span<const eval::Backend* const> backends,
                                const compile::PyTorch* pytorch, const std::vector<Fact>& common);

// True if nothing is missing that judging needs.
bool can_judge(const std::vector<Fact>& facts);

}  // namespace mc::cli

#endif  // MC_CLI_DOCTOR_H_
