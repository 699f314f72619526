// SPDX-License-Identifier: Apache-2.0
//
// The sizes of a task.  A task is drawn once, at small sizes that the CPU verifies, and also has
// native and large sizes for a GPU.  Sizes are constants of the module, so only these numbers
// differ. The verifier's other shapes are a further, hidden set (python/harness/judge/shapes.py).
#ifndef MC_FORGE_SIZES_H_
#define MC_FORGE_SIZES_H_

#include <cstdint>

#include "forge/graph.h"

namespace mc::forge {

// The number of elements of the largest tensor, as powers of two.
inline constexpr int kNativeBits[] = {16, 20};
inline constexpr int kLargeBits[] = {20, 26};
// The maximum steps of a node's loops, so that the simplest kernel ends soon.
inline constexpr int64_t kLargeStepsMax = int64_t{1} << 33;

// Sets Dim::native and Dim::large, determined by the task's seed.
void bind_sizes(TaskGraph& graph);

}  // namespace mc::forge

#endif  // MC_FORGE_SIZES_H_
