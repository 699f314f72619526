// SPDX-License-Identifier: Apache-2.0
//
// The choice among correct answers to one task: which kernel `musacoder optimize` keeps.
//
//   `if (const store::Judgement* best = winner_of(judgements)) write(*best);`
#ifndef MC_BENCH_WINNER_H_
#define MC_BENCH_WINNER_H_

#include <optional>
#include <span>

#include "store/records.h"
#include "task/verdict.h"

namespace mc::bench {

// The lower end of the interval of the speed-up over eager PyTorch, so that noise gains nothing;
// empty where the verdict is no pass or nothing was timed.
std::optional<double> speedup_of(const task::Verdict& verdict);

// True for a pass that is right at sizes other than the task's own, where some were tried.
bool is_general(const task::Verdict& verdict);

// The fastest correct answer.  Where none was timed: the earliest of those that are general, or of
// all where none is.  An answer to a task that any constant passes is not correct.  The result
// points into `judgements`, and is null if no answer is correct.
const store::Judgement* winner_of(std::span<const store::Judgement> judgements);

}  // namespace mc::bench

#endif  // MC_BENCH_WINNER_H_
