// SPDX-License-Identifier: Apache-2.0
//
// Sizes that a candidate may have hard-coded: lines of its source that contain one of the task's
// own sizes as a number.  This is a guess for the author of a candidate that fails at other sizes.
// It decides only whether such a failure may be due to the size (eval/limitation.h).
#ifndef MC_TASK_FIXED_SIZES_H_
#define MC_TASK_FIXED_SIZES_H_

#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "task/verdict.h"

namespace mc::task {

inline constexpr int64_t kFixedSizeMin = 16;  // Smaller numbers occur everywhere.
inline constexpr size_t kFixedSizesMax = 8;

// The lines with the largest size first, each size at its first lines; comments are ignored.
std::vector<SourceLocation> lines_with_sizes(std::string_view module,
                                             const std::set<int64_t>& sizes);

}  // namespace mc::task

#endif  // MC_TASK_FIXED_SIZES_H_
