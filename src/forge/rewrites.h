// SPDX-License-Identifier: Apache-2.0
//
// Rewrites: samples that make a correct answer faster, from verdicts with times measured on a
// device.
//
// A pair consists of two correct answers to one task whose times differ by more than kGainMin and
// whose confidence intervals do not overlap.  Its row is a conversation: the task, the slow answer,
// MooreEval's feedback with the measured time, and the fast answer.
#ifndef MC_FORGE_REWRITES_H_
#define MC_FORGE_REWRITES_H_

#include <string>
#include <vector>

#include "core/result.h"
#include "store/store.h"

namespace mc::forge {

inline constexpr double kGainMin = 1.1;

// Rows of sft.jsonl, at most one for each task, ordered by task id.  A row pairs the fastest answer
// with the slowest answer that it beats.  A run without measured answers gives no rows.
Result<std::vector<std::string>> rewrites_of(const store::Run& run);

}  // namespace mc::forge

#endif  // MC_FORGE_REWRITES_H_
