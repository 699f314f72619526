// SPDX-License-Identifier: Apache-2.0
//
// The number of blocks and warps of a kernel that a multiprocessor can hold at once.  Source: CUDA
// C++ Programming Guide, "Compute Capabilities"; the limits are those of 9.0.
#ifndef MC_TIMING_OCCUPANCY_H_
#define MC_TIMING_OCCUPANCY_H_

#include <array>
#include <cstdint>
#include <string>

namespace mc::timing {

// Limits of a multiprocessor.
inline constexpr int64_t kWarpsMax = 64;
inline constexpr int64_t kBlocksMax = 32;
inline constexpr int64_t kRegistersMax = 65536;
inline constexpr int64_t kSharedBytesMax = 228 * 1024;

struct Occupancy {
  int64_t blocks = 0;
  int64_t warps = 0;  // The warps of all these blocks.
  // "warps", "blocks", "registers" or "shared memory": the first of the scarcest.
  std::string limit;
};

// The occupancy for a kernel with `threads` and `shared_bytes` for each block, and `registers` for
// each thread.  REQUIRES: threads > 0 and shared_bytes >= 0.
Occupancy occupancy_of(int64_t threads, int64_t registers, int64_t shared_bytes);

struct BlockNeeds {
  std::array<int64_t, 3> block{};
  int64_t registers = 0;     // For each thread.
  int64_t shared_bytes = 0;  // For each block.
};

// The resident warps of a multiprocessor as a share of the most that it can hold: from 0 (a block
// does not fit, or has no threads) to 1.
double occupancy(const BlockNeeds& needs);

}  // namespace mc::timing

#endif  // MC_TIMING_OCCUPANCY_H_
