// SPDX-License-Identifier: Apache-2.0
// Warp shuffles, votes, matches and reductions.
//
// A value of up to eight bytes travels through a 64-bit word.  A lane that reads from one which
// does not take part (it returned, or the mask leaves it out) gets all ones: CUDA leaves it
// undefined.  What a mask and a ballot are in a warp of 128 lanes is in runtime/worker_warp.cc.
#ifndef MC_EMU_WARP_H_
#define MC_EMU_WARP_H_

#include <cstring>
#include <type_traits>

#include "mc_emu/abi.h"
#include "mc_emu/language.h"

namespace mc_emu {

template <class T>
inline uint64_t to_word(const T& value) {
  static_assert(sizeof(T) <= 8, "values of warp operations have at most eight bytes");
  uint64_t word = 0;
  __builtin_memcpy(&word, &value, sizeof(T));
  return word;
}

template <class T>
inline T from_word(uint64_t word) {
  T value;
  __builtin_memcpy(static_cast<void*>(&value), &word, sizeof(T));
  return value;
}

template <class T>
inline T shuffle(int kind, unsigned mask, T value, int argument, int width, int line) {
  return from_word<T>(mc_emu_warp(kind, mask, to_word(value), argument, width, line));
}

inline uint64_t vote(int kind, unsigned mask, uint64_t value, int line) {
  return mc_emu_warp(kind, mask, value, 0, 0, line);
}

}  // namespace mc_emu

template <class T>
inline T __shfl_sync(unsigned mask, T value, int lane, int width = warpSize,
                     int line = __builtin_LINE()) {
  return mc_emu::shuffle(kMcEmuWarpIndex, mask, value, lane, width, line);
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                        int line = __builtin_LINE()) {
  return mc_emu::shuffle(kMcEmuWarpUp, mask, value, static_cast<int>(delta), width, line);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                          int line = __builtin_LINE()) {
  return mc_emu::shuffle(kMcEmuWarpDown, mask, value, static_cast<int>(delta), width, line);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = warpSize,
                         int line = __builtin_LINE()) {
  return mc_emu::shuffle(kMcEmuWarpXor, mask, value, lane_mask, width, line);
}

inline void __syncwarp(unsigned mask = 0xFFFFFFFFu, int line = __builtin_LINE()) {
  mc_emu::vote(kMcEmuWarpSync, mask, 0, line);
}
inline unsigned __activemask(int line = __builtin_LINE()) {
  return mc_emu_active_mask(kMcEmuWarpSync, line);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return static_cast<unsigned>(mc_emu::vote(kMcEmuWarpBallot, mask, predicate != 0, line));
}
inline int __any_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return mc_emu::vote(kMcEmuWarpBallot, mask, predicate != 0, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return mc_emu::vote(kMcEmuWarpBallot, mask, predicate == 0, line) == 0;
}
inline int __uni_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return mc_emu::vote(kMcEmuWarpMatchAll, mask, predicate != 0, line) != 0;
}

template <class T>
inline unsigned __match_any_sync(unsigned mask, T value, int line = __builtin_LINE()) {
  return static_cast<unsigned>(
      mc_emu::vote(kMcEmuWarpMatchAny, mask, mc_emu::to_word(value), line));
}
template <class T>
inline unsigned __match_all_sync(unsigned mask, T value, int* all, int line = __builtin_LINE()) {
  const uint64_t lanes = mc_emu::vote(kMcEmuWarpMatchAll, mask, mc_emu::to_word(value), line);
  *all = lanes != 0;
  return static_cast<unsigned>(lanes);
}

#define MC_EMU_REDUCE(name, type, kind)                                                     \
  inline type name(unsigned mask, type value, int line = __builtin_LINE()) {                \
    return static_cast<type>(mc_emu::vote(kind, mask, static_cast<unsigned>(value), line)); \
  }
MC_EMU_REDUCE(__reduce_add_sync, unsigned, kMcEmuWarpAddUnsigned)
MC_EMU_REDUCE(__reduce_add_sync, int, kMcEmuWarpAddUnsigned)
MC_EMU_REDUCE(__reduce_min_sync, unsigned, kMcEmuWarpMinUnsigned)
MC_EMU_REDUCE(__reduce_min_sync, int, kMcEmuWarpMinSigned)
MC_EMU_REDUCE(__reduce_max_sync, unsigned, kMcEmuWarpMaxUnsigned)
MC_EMU_REDUCE(__reduce_max_sync, int, kMcEmuWarpMaxSigned)
MC_EMU_REDUCE(__reduce_and_sync, unsigned, kMcEmuWarpAnd)
MC_EMU_REDUCE(__reduce_or_sync, unsigned, kMcEmuWarpOr)
MC_EMU_REDUCE(__reduce_xor_sync, unsigned, kMcEmuWarpExclusiveOr)
#undef MC_EMU_REDUCE

#endif  // MC_EMU_WARP_H_
