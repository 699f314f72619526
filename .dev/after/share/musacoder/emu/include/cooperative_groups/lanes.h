// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_COOPERATIVE_GROUPS_LANES_H_
#define MC_EMU_COOPERATIVE_GROUPS_LANES_H_

// Ranks, lanes and masks, and shuffles of values of any size: what cooperative groups and CUB
// share.  Their groups have at most 32 lanes in a warp of any size: lanes and masks are those of
// the caller's aligned 32 lanes.

#include <cstring>
#include <type_traits>

#include "cuda_runtime.h"
#include "mc_emu/warp.h"

namespace mc_emu {

inline unsigned rank_in_block() {
  return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}
inline unsigned block_size() { return blockDim.x * blockDim.y * blockDim.z; }
inline unsigned lane() { return rank_in_block() % 32u; }
inline unsigned lanes_below(unsigned lane) { return lane >= 32u ? ~0u : (1u << lane) - 1u; }

// The lanes of these 32 that exist: the last ones of a block may be fewer.
inline unsigned lanes_that_exist() {
  return lanes_below(block_size() - (rank_in_block() - lane()));
}

// The lanes of the aligned segment of `width` lanes around this one, as far as they exist.
inline unsigned lanes_of_segment(unsigned width) {
  return (lanes_below(width) << (lane() / width * width)) & lanes_that_exist();
}

// Moves the bits of the lanes in `mask` to the bottom, in order.
inline unsigned packed(unsigned bits, unsigned mask) {
  unsigned out = 0;
  for (unsigned rank = 0; mask != 0; mask &= mask - 1u, ++rank) {
    if (bits & mask & (0u - mask)) out |= 1u << rank;
  }
  return out;
}

inline unsigned lane_of_rank(unsigned mask, unsigned rank) {
  for (; rank > 0; --rank) mask &= mask - 1u;
  return static_cast<unsigned>(__builtin_ctz(mask));
}

// The vote or match of a group.
template <class T>
unsigned group_vote(int kind, unsigned mask, T value, int line = __builtin_LINE()) {
  return static_cast<unsigned>(vote(kind | kMcEmuWarpGroup, mask, to_word(value), line));
}

// The shuffle of a group, for a value of any size, piece by piece.
template <class T>
T group_shuffle(int kind, unsigned mask, const T& value, int argument, int width,
                int line = __builtin_LINE()) {
  constexpr unsigned kNumPieces = (sizeof(T) + 7u) / 8u;
  unsigned long long pieces[kNumPieces] = {};
  std::memcpy(pieces, static_cast<const void*>(&value), sizeof(T));
  for (unsigned long long& piece : pieces) {
    piece = shuffle(kind | kMcEmuWarpGroup, mask, piece, argument, width, line);
  }
  T result = value;
  std::memcpy(static_cast<void*>(&result), pieces, sizeof(T));
  return result;
}

}  // namespace mc_emu

#endif  // MC_EMU_COOPERATIVE_GROUPS_LANES_H_
