// SPDX-License-Identifier: Apache-2.0
//
// How many warps of a kernel a multiprocessor can hold at once, of those it could hold.
// CUDA C++ Programming Guide, "Compute Capabilities"; the limits are those of 8.0 and 9.0.
#ifndef MC_TIMING_OCCUPANCY_H_
#define MC_TIMING_OCCUPANCY_H_

#include <array>
#include <cstdint>

namespace mc::timing {

struct BlockNeeds {
  std::array<int64_t, 3> block{};
  int64_t registers = 0;     // A thread.
  int64_t shared_bytes = 0;  // A block.
};

// From 0 (it does not fit, or there are no threads) to 1.
double occupancy(const BlockNeeds& needs);

}  // namespace mc::timing

#endif  // MC_TIMING_OCCUPANCY_H_
