// SPDX-License-Identifier: Apache-2.0
//
// Excuses: failures that only the emulator may be the reason of.
//
// It judges large tasks at smaller sizes, for which a candidate may not be made, and it is slow.  A
// candidate is excused (`unsupported`) where it shows that it is right: at the task's own sizes, in
// one trial, or at much smaller ones.  One whose own check refuses the smaller sizes (it raises, or
// what it says names the task's size) is excused also where the task's own are too much to be tried
// here.
#ifndef MC_EVAL_EXCUSE_H_
#define MC_EVAL_EXCUSE_H_

#include <cstdint>
#include <optional>
#include <set>

#include "execute/decode.h"
#include "task/verdict.h"

namespace mc::eval {

struct Excuse {
  const char* shape = "";  // Where to try it: "native" or "tiny", as the judge knows them.
  double forward_s = 0;    // Processor time for that; 0 for the usual.
  task::RuleFinding why;
  bool holds_untried = false;  // Where the task cannot be judged there, or takes too long.
};

// The excuse that would fit a failure on the emulator, if any.  `sizes`: those of the task's own
// that were reduced and that the candidate's text holds; without one it is not made for them.
std::optional<Excuse> excuse_for(const task::Outcome& outcome, const execute::JudgePlan& plan,
                                 const std::set<int64_t>& sizes);

// Whether `tried` bears it out; empty where the task could not be judged there.
bool is_excused(const Excuse& excuse, const std::optional<task::Outcome>& tried);

}  // namespace mc::eval

#endif  // MC_EVAL_EXCUSE_H_
