// SPDX-License-Identifier: Apache-2.0
//
// Excuses: failures that only the device in software may be the reason of.
//
// It judges large tasks at smaller sizes, for which a candidate may not be made, and it is slow.  A
// candidate is excused (`unsupported`) only on evidence that it is right: trials that passed at
// other sizes.  A wrong candidate must not gain by looking like one that is made for large sizes or
// slow:
//
// - A candidate that fails at reduced sizes must be right where the sizes that its text names are
//   the task's own.
// - A candidate that is too slow must be right at smaller sizes, and the time that its kernels took
//   at the largest one that it finished must explain that it does not finish the next.  One that
//   hangs wherever the sizes are not tiny is fast there, and host code is not what is executed
//   there.
#ifndef MC_EVAL_EXCUSE_H_
#define MC_EVAL_EXCUSE_H_

#include <cstdint>
#include <optional>
#include <set>
#include <span>

#include "execute/decode.h"
#include "execute/executor.h"
#include "task/verdict.h"

namespace mc::eval {

struct DeviceLimitation {
  // The sizes at which the candidate may show that it is right, as the judge names them: the first
  // that the task can be judged at or, for a slow candidate, all of them, smallest first.
  std::span<const char* const> shapes;
  double forward_s = 0;  // Processor time for one trial there; 0 for the usual.
  task::RuleFinding why;
  bool is_slow = false;
};

// The excuse that would fit a failure there, if any.  `sizes`: those of the task's own
// that were reduced and that the candidate's text holds; without one it is not made for them.
std::optional<DeviceLimitation> excuse_for(const task::Outcome& outcome,
                                           const execute::JudgePlan& plan,
                                           const std::set<int64_t>& sizes);

// True where the trials that were made bear the excuse out.  `limit_s` is that of each of them.
bool is_unsupported(const DeviceLimitation& excuse, std::span<const execute::Tried> tried,
                    double limit_s);

}  // namespace mc::eval

#endif  // MC_EVAL_EXCUSE_H_
