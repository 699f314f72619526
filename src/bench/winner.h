// SPDX-License-Identifier: Apache-2.0
//
// The choice among correct answers to one task: the kernel that `musacoder optimize` keeps.
//
//   `if (const store::Judgement* best = winner_of(judgements)) write(*best);`
#ifndef MC_BENCH_WINNER_H_
#define MC_BENCH_WINNER_H_

#include <optional>
#include <span>

#include "store/records.h"
#include "task/verdict.h"

namespace mc::bench {

// The lower end of the speed-up's confidence interval, relative to eager PyTorch, so that noise is
// no advantage.  Empty if the verdict is not a pass or has no timing.
std::optional<double> speedup_of(const task::Verdict& verdict);

// True for a pass that was also correct at other sizes than the task's, if other sizes were tried.
bool is_general(const task::Verdict& verdict);

// The fastest correct answer.  If none was timed: the earliest correct answer for which
// is_general() is true, or the earliest correct answer if there is none such.  For a task that any
// constant passes, no answer counts as correct.  The result points into `judgements`, and is null
// if no answer is correct.
const store::Judgement* winner_of(std::span<const store::Judgement> judgements);

}  // namespace mc::bench

#endif  // MC_BENCH_WINNER_H_
