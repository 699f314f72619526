// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_COOPERATIVE_GROUPS_LANES_H_
#define MC_EMU_COOPERATIVE_GROUPS_LANES_H_

// Ranks, lanes and masks, and shuffles of values of any size: what cooperative groups and CUB
// share.

#include <cstring>
#include <type_traits>

#include "cuda_runtime.h"

namespace mc_emu {

inline unsigned rank_in_block() {
  return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}
inline unsigned block_size() { return blockDim.x * blockDim.y * blockDim.z; }
inline unsigned lane() { return rank_in_block() % 32u; }
inline unsigned lanes_below(unsigned lane) { return lane >= 32u ? ~0u : (1u << lane) - 1u; }

// The lanes of this warp that exist: the last warp of a block may be short.
inline unsigned lanes_of_warp() { return lanes_below(block_size() - (rank_in_block() - lane())); }

// The lanes of the aligned segment of `width` lanes around this one, as far as they exist.
inline unsigned lanes_of_segment(unsigned width) {
  return (lanes_below(width) << (lane() / width * width)) & lanes_of_warp();
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

// Applies a shuffle of eight bytes to a value of any size, piece by piece.
template <class T, class Shuffle>
T shuffle_pieces(const T& value, Shuffle shuffle) {
  constexpr unsigned kNumPieces = (sizeof(T) + 7u) / 8u;
  unsigned long long pieces[kNumPieces] = {};
  std::memcpy(pieces, static_cast<const void*>(&value), sizeof(T));
  for (unsigned i = 0; i < kNumPieces; ++i) pieces[i] = shuffle(pieces[i]);
  T result = value;
  std::memcpy(static_cast<void*>(&result), pieces, sizeof(T));
  return result;
}

}  // namespace mc_emu

#endif  // MC_EMU_COOPERATIVE_GROUPS_LANES_H_
