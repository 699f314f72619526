// SPDX-License-Identifier: Apache-2.0
//
// For tests: verdicts of every kind with every field set, determined by a seed.
#ifndef MC_TASK_TESTING_VERDICT_GENERATOR_H_
#define MC_TASK_TESTING_VERDICT_GENERATOR_H_

#include <cstddef>
#include <cstdint>

#include "task/verdict.h"

namespace mc::task {

// A verdict whose outcome is the alternative `outcome_index`.  All doubles are finite and all text
// is UTF-8, so that parsing its JSON gives an equal verdict.  REQUIRES: outcome_index <
// std::variant_size_v<Outcome>.
Verdict generate_verdict(uint64_t seed, size_t outcome_index);

}  // namespace mc::task

#endif  // MC_TASK_TESTING_VERDICT_GENERATOR_H_
