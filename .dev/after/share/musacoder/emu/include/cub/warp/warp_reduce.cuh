// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUB_WARP_WARP_REDUCE_CUH_
#define MC_EMU_CUB_WARP_WARP_REDUCE_CUH_

// The class cub::WarpReduce: reductions over the lanes of a (logical) warp, by shuffles.  Lane 0
// has the result.

#include "cooperative_groups/lanes.h"
#include "cub/util/operators.cuh"

namespace cub {

template <class T, int LOGICAL_WARP_THREADS = 32, int = 0>
class WarpReduce {
  static_assert(LOGICAL_WARP_THREADS >= 1 && LOGICAL_WARP_THREADS <= 32 &&
                    (LOGICAL_WARP_THREADS & (LOGICAL_WARP_THREADS - 1)) == 0,
                "the emulator has logical warps of a power of two lanes");

 public:
  struct TempStorage {
    unsigned char unused;
  };

  explicit WarpReduce(TempStorage&) {}

  T Sum(T input) { return Reduce(input, ::cub::Sum()); }
  T Sum(T input, int valid_items) { return Reduce(input, ::cub::Sum(), valid_items); }
  T Max(T input) { return Reduce(input, ::cub::Max()); }
  T Max(T input, int valid_items) { return Reduce(input, ::cub::Max(), valid_items); }
  T Min(T input) { return Reduce(input, ::cub::Min()); }
  T Min(T input, int valid_items) { return Reduce(input, ::cub::Min(), valid_items); }

  template <class Operator>
  T Reduce(T input, Operator combine) {
    return Reduce(input, combine, LOGICAL_WARP_THREADS);
  }

  template <class Operator>
  T Reduce(T input, Operator combine, int valid_items) {
    const unsigned mask = ::mc_emu::lanes_of_segment(LOGICAL_WARP_THREADS);
    const int lane = static_cast<int>(::mc_emu::lane()) % LOGICAL_WARP_THREADS;
    T total = input;
    for (int distance = 1; distance < LOGICAL_WARP_THREADS; distance *= 2) {
      const T other =
          ::mc_emu::group_shuffle(kMcEmuWarpDown, mask, total, distance, LOGICAL_WARP_THREADS);
      if (lane + distance < valid_items && lane + distance < LOGICAL_WARP_THREADS) {
        total = combine(total, other);
      }
    }
    return total;
  }

  // The sum of each segment that begins (head) or ends (tail) at a flag, in its first lane.
  template <class Flag>
  T HeadSegmentedSum(T input, Flag head) {
    return segmented(input, head, ::cub::Sum(), true);
  }
  template <class Flag>
  T TailSegmentedSum(T input, Flag tail) {
    return segmented(input, tail, ::cub::Sum(), false);
  }
  template <class Operator, class Flag>
  T HeadSegmentedReduce(T input, Flag head, Operator combine) {
    return segmented(input, head, combine, true);
  }
  template <class Operator, class Flag>
  T TailSegmentedReduce(T input, Flag tail, Operator combine) {
    return segmented(input, tail, combine, false);
  }

 private:
  template <class Flag, class Operator>
  T segmented(T input, Flag flag, Operator combine, bool at_head) {
    const unsigned mask = ::mc_emu::lanes_of_segment(LOGICAL_WARP_THREADS);
    const unsigned lane = ::mc_emu::lane();
    unsigned flags = ::mc_emu::group_vote(kMcEmuWarpBallot, mask, flag != 0) & mask;
    // A lane before each head is a tail, and so is the last lane.
    if (at_head) flags = (flags >> 1) & mask;
    flags |= mask & ~(mask >> 1);
    const unsigned end = static_cast<unsigned>(__builtin_ctz(flags >> lane)) + lane;
    T total = input;
    for (unsigned distance = 1; distance < LOGICAL_WARP_THREADS; distance *= 2) {
      const T other = ::mc_emu::group_shuffle(kMcEmuWarpDown, mask, total,
                                              static_cast<int>(distance), LOGICAL_WARP_THREADS);
      if (lane + distance <= end) total = combine(total, other);
    }
    return total;
  }
};

}  // namespace cub

#endif  // MC_EMU_CUB_WARP_WARP_REDUCE_CUH_
