// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUB_UTIL_PTX_CUH_
#define MC_EMU_CUB_UTIL_PTX_CUH_

// CUB's names for lanes, warps and shuffles.

#include "cooperative_groups/lanes.h"

namespace cub {

inline unsigned LaneId() { return ::mc_emu::lane(); }
inline unsigned WarpId() { return ::mc_emu::rank_in_block() / 32u; }
inline int RowMajorTid(int dim_x, int dim_y, int) {
  return static_cast<int>((threadIdx.z * static_cast<unsigned>(dim_y) + threadIdx.y) *
                              static_cast<unsigned>(dim_x) +
                          threadIdx.x);
}

// From `offset` lanes below or above; lanes before `first` or after `last` of the (logical) warp
// keep their own value.
template <int kWidth, class T>
T ShuffleUp(T value, int offset, int first, unsigned mask) {
  const T other = ::mc_emu::group_shuffle(kMcEmuWarpUp, mask, value, offset, kWidth);
  return static_cast<int>(LaneId()) % kWidth - offset < first ? value : other;
}
template <int kWidth, class T>
T ShuffleDown(T value, int offset, int last, unsigned mask) {
  const T other = ::mc_emu::group_shuffle(kMcEmuWarpDown, mask, value, offset, kWidth);
  return static_cast<int>(LaneId()) % kWidth + offset > last ? value : other;
}
template <int kWidth, class T>
T ShuffleIndex(T value, int lane, unsigned mask) {
  return ::mc_emu::group_shuffle(kMcEmuWarpIndex, mask, value, lane, kWidth);
}

}  // namespace cub

#endif  // MC_EMU_CUB_UTIL_PTX_CUH_
