// SPDX-License-Identifier: Apache-2.0
// Warps and their lanes.  A warp has 32 threads, or 128 as on GPUs of Moore Threads with the
// architectures mp_21 and mp_22: a choice of the process (McEmuOptions).
#ifndef MC_EMU_RUNTIME_LANES_H_
#define MC_EMU_RUNTIME_LANES_H_

#include <bit>
#include <cstdint>

namespace mc::emu {

constexpr int kLanesMax = 128;
constexpr int kLanesNamed = 32;  // A mask of CUDA has no more bits.

// The binary logarithm of the warp size: 5 or 7.  Constant after mc_emu_init; kernels see a copy.
extern int warp_shift __attribute__((visibility("hidden")));

inline int warp_size() { return 1 << warp_shift; }
inline int warp_of(int thread) { return thread >> warp_shift; }
inline int lane_of(int thread) { return thread & (warp_size() - 1); }

// A set of lanes of one warp, a bit each.
__extension__ typedef unsigned __int128 LaneSet;

inline LaneSet only_lane(int lane) { return LaneSet{1} << lane; }
inline LaneSet first_lanes(int count) {
  return count == kLanesMax ? ~LaneSet{0} : only_lane(count) - 1;
}

// The lowest one.  REQUIRES: there is one.
inline int lowest_lane(LaneSet lanes) {
  const auto low = static_cast<uint64_t>(lanes);
  if (low != 0) return std::countr_zero(low);
  return 64 + std::countr_zero(static_cast<uint64_t>(lanes >> 64));
}

template <class F>
void for_each_lane(LaneSet lanes, F f) {
  for (auto rest = static_cast<uint64_t>(lanes); rest != 0; rest &= rest - 1) {
    f(std::countr_zero(rest));
  }
  for (auto rest = static_cast<uint64_t>(lanes >> 64); rest != 0; rest &= rest - 1) {
    f(64 + std::countr_zero(rest));
  }
}

}  // namespace mc::emu

#endif  // MC_EMU_RUNTIME_LANES_H_
