// SPDX-License-Identifier: Apache-2.0
//
// Limitations: failures that the device in software may have caused instead of the candidate.
//
// The device judges large tasks at reduced sizes, which a candidate may not be made for, and it is
// slow.  Such a failure becomes `unsupported` only on evidence that the candidate is right: trials
// that passed at other sizes.  A wrong candidate must not gain by resembling one that is made for
// large sizes, or one that is slow:
//
// - A candidate that fails at reduced sizes must be right where the sizes that its source
//   contains are the task's own.
// - A candidate that is too slow must be right at smaller sizes, and the time that its kernels
//   took at the largest size that it finished must explain why it does not finish the next one.
//   A candidate that hangs at all but tiny sizes fails this test: it is fast at tiny ones, and time
//   in host code is not counted.
#ifndef MC_EVAL_LIMITATION_H_
#define MC_EVAL_LIMITATION_H_

#include <cstdint>
#include <optional>
#include <set>
#include <span>

#include "execute/decode.h"
#include "execute/executor.h"
#include "task/outcome.h"

namespace mc::eval {

struct DeviceLimitation {
  // The sizes, by the judge's names, at which the candidate may prove that it is right: the first
  // one at which the task can be judged or, for a slow candidate, all of them, smallest first.
  std::span<const char* const> shapes;
  double forward_s = 0;  // Processor time for one trial at these sizes; 0 for the usual limit.
  task::RuleFinding why;
  bool is_slow = false;
};

// The limitation that would explain the failure, if any.  `sizes` are the task's own sizes that
// were reduced and that the candidate's source contains; a candidate without such a size is not
// made for them.
std::optional<DeviceLimitation> limitation_for(const task::Outcome& outcome,
                                               const execute::JudgePlan& plan,
                                               const std::set<int64_t>& sizes);

// True where the trials confirm the limitation.  `limit_s` is the time limit of each trial.
bool is_unsupported(const DeviceLimitation& limitation, std::span<const execute::Tried> tried,
                    double limit_s);

}  // namespace mc::eval

#endif  // MC_EVAL_LIMITATION_H_
