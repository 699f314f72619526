// SPDX-License-Identifier: Apache-2.0
//
// The command doctor: what this machine can do, what it lacks, and the exact command that adds it.
//
// Facts are found by small functions that look at the machine and change nothing; the report and
// the exit code follow from the facts alone, so they can be tested without a machine that lacks
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

// Looks at everything; takes a few seconds, or cuda_driver.h's limit where the GPU's driver hangs.
std::vector<Fact> probe_machine();

// Sections in order of first appearance, a line a fact and the remedy below what is missing; at the
// end what can be judged here, or the commands that are needed first.
std::string doctor_report(const std::vector<Fact>& facts);

// The findings of each backend, and then for each a fact of the section "backends": whether it can
// judge here.  `common` is what all of them need; of what one alone lacks, none is kMissing.
std::vector<Fact> backend_facts(std::span<const eval::Backend* const> backends,
                                const compile::PyTorch* pytorch, const std::vector<Fact>& common);

// True if nothing needed is missing.
bool can_judge(const std::vector<Fact>& facts);

}  // namespace mc::cli

#endif  // MC_CLI_DOCTOR_H_
