// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CURAND_PHILOX_H_
#define MC_EMU_CURAND_PHILOX_H_

// Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3",
// 2011) with cuRAND's interface.  A state is a 128-bit counter under a 64-bit key (the seed); each
// value of the counter gives four numbers.  The upper half of the counter is the subsequence.

#include "cuda_runtime.h"
#include "mc_emu/math.h"

struct curandStatePhilox4_32_10 {
  uint4 ctr;
  uint4 output;  // The four numbers of `ctr`.
  uint2 key;
  unsigned STATE;  // How many of them were taken.
  bool has_normal;
  bool has_normal_double;
  float spare_normal;
  double spare_normal_double;
};
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;

// The bijection itself: ten rounds of two multiplications.
inline uint4 curand_Philox4x32_10(uint4 counter, uint2 key) {
  constexpr unsigned kMultiplierX = 0xD2511F53u, kMultiplierZ = 0xCD9E8D57u;
  constexpr unsigned kWeylX = 0x9E3779B9u, kWeylY = 0xBB67AE85u;
  for (int round = 0; round < 10; ++round) {
    const unsigned long long x = static_cast<unsigned long long>(kMultiplierX) * counter.x;
    const unsigned long long z = static_cast<unsigned long long>(kMultiplierZ) * counter.z;
    const unsigned high_x = static_cast<unsigned>(x >> 32);
    const unsigned high_z = static_cast<unsigned>(z >> 32);
    counter = make_uint4(high_z ^ counter.y ^ key.x, static_cast<unsigned>(z),
                         high_x ^ counter.w ^ key.y, static_cast<unsigned>(x));
    key.x += kWeylX;
    key.y += kWeylY;
  }
  return counter;
}

namespace mc_emu {

// Adds to the 128-bit counter, or to its upper half.
inline void add_to_counter(uint4* counter, unsigned long long low, unsigned long long high) {
  const unsigned long long before =
      counter->x | (static_cast<unsigned long long>(counter->y) << 32);
  const unsigned long long sum = before + low;
  const unsigned long long upper =
      (counter->z | (static_cast<unsigned long long>(counter->w) << 32)) + high + (sum < low);
  *counter = make_uint4(static_cast<unsigned>(sum), static_cast<unsigned>(sum >> 32),
                        static_cast<unsigned>(upper), static_cast<unsigned>(upper >> 32));
}

}  // namespace mc_emu

inline void skipahead(unsigned long long count, curandStatePhilox4_32_10_t* state) {
  const unsigned long long taken = state->STATE + (count & 3u);
  ::mc_emu::add_to_counter(&state->ctr, count / 4u + taken / 4u, 0);
  state->STATE = static_cast<unsigned>(taken & 3u);
  state->output = curand_Philox4x32_10(state->ctr, state->key);
}
inline void skipahead_sequence(unsigned long long count, curandStatePhilox4_32_10_t* state) {
  ::mc_emu::add_to_counter(&state->ctr, 0, count);
  state->output = curand_Philox4x32_10(state->ctr, state->key);
}

inline void curand_init(unsigned long long seed, unsigned long long subsequence,
                        unsigned long long offset, curandStatePhilox4_32_10_t* state) {
  *state = curandStatePhilox4_32_10_t{};
  state->key = make_uint2(static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32));
  skipahead_sequence(subsequence, state);
  skipahead(offset, state);
}

// The next four numbers.
inline uint4 curand4(curandStatePhilox4_32_10_t* state) {
  const uint4 now = state->output;
  ::mc_emu::add_to_counter(&state->ctr, 1, 0);
  state->output = curand_Philox4x32_10(state->ctr, state->key);
  const uint4 next = state->output;
  switch (state->STATE) {
    case 0:
      return now;
    case 1:
      return make_uint4(now.y, now.z, now.w, next.x);
    case 2:
      return make_uint4(now.z, now.w, next.x, next.y);
    default:
      return make_uint4(now.w, next.x, next.y, next.z);
  }
}

inline unsigned curand(curandStatePhilox4_32_10_t* state) {
  const uint4 now = state->output;
  const unsigned numbers[4] = {now.x, now.y, now.z, now.w};
  const unsigned number = numbers[state->STATE & 3u];
  if (++state->STATE == 4) {
    ::mc_emu::add_to_counter(&state->ctr, 1, 0);
    state->output = curand_Philox4x32_10(state->ctr, state->key);
    state->STATE = 0;
  }
  return number;
}

#endif  // MC_EMU_CURAND_PHILOX_H_
