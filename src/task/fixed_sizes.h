// SPDX-License-Identifier: Apache-2.0
//
// Sizes that a candidate may have fixed: lines of its text that hold one of the task's own as a
// number.  A guess to be told to its author, where it fails at other sizes; it decides only whether
// such a failure may be the size's (eval/excuse.h).
#ifndef MC_TASK_FIXED_SIZES_H_
#define MC_TASK_FIXED_SIZES_H_

#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "task/verdict.h"

namespace mc::task {

inline constexpr int64_t kFixedSizeMin = 16;  // Smaller numbers are everywhere.
inline constexpr size_t kFixedSizesMax = 8;

// The largest size first, each at its first lines; comments do not count.
std::vector<SourceLocation> lines_with_sizes(std::string_view module,
                                             const std::set<int64_t>& sizes);

}  // namespace mc::task

#endif  // MC_TASK_FIXED_SIZES_H_
