// SPDX-License-Identifier: Apache-2.0
//
// Size bindings: a task is drawn once, at small sizes that the CPU verifies, and is bound to native
// and large ones for a GPU.  Sizes are constants of the module, so a binding is other numbers.
// What the verifier draws for its other shapes is the hidden binding
// (python/harness/judge/shapes.py).
#ifndef MC_FORGE_SIZES_H_
#define MC_FORGE_SIZES_H_

#include <cstdint>

#include "forge/graph.h"

namespace mc::forge {

// The elements of the largest tensor, as powers of two.
inline constexpr int kNativeBits[] = {16, 20};
inline constexpr int kLargeBits[] = {20, 26};
// The bound on the steps of a node's loops, so that the plainest kernel ends soon.
inline constexpr int64_t kLargeStepsMax = int64_t{1} << 33;

// Fills Dim::native and Dim::large, by the task's seed.
void bind_sizes(TaskGraph& graph);

}  // namespace mc::forge

#endif  // MC_FORGE_SIZES_H_
