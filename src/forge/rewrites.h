// SPDX-License-Identifier: Apache-2.0
//
// Rewrites: samples that make a right answer faster, from verdicts that measured both on a device.
//
// A pair is two right answers to one task whose times differ by more than kGainMin and whose
// intervals do not touch.  Its row is a conversation: the task, the slow answer, MooreEval's
// feedback with the measured time, the fast answer.
#ifndef MC_FORGE_REWRITES_H_
#define MC_FORGE_REWRITES_H_

#include <string>
#include <vector>

#include "core/result.h"
#include "store/store.h"

namespace mc::forge {

inline constexpr double kGainMin = 1.1;

// Rows of sft.jsonl, at most one for each task, in the order of the tasks' ids: the slowest answer
// that a faster one beats, and the fastest one.  A run without measured answers gives none.
Result<std::vector<std::string>> rewrites_of(const store::Run& run);

}  // namespace mc::forge

#endif  // MC_FORGE_REWRITES_H_
