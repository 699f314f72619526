// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CURAND_XORWOW_H_
#define MC_EMU_CURAND_XORWOW_H_

// XORWOW (Marsaglia, "Xorshift RNGs", 2003) with cuRAND's interface.
//
// Theory: the five words v are a vector of 160 bits and one step multiplies it by a matrix over
// GF(2); the sixth, d, only counts.  The runtime skips steps (runtime/xorwow.cc); a subsequence is
// 2^67 of them.

#include "cuda_runtime.h"
#include "mc_emu/abi.h"

struct curandStateXORWOW {
  unsigned d;
  unsigned v[5];
  bool has_normal;
  bool has_normal_double;
  float spare_normal;
  double spare_normal_double;
};
typedef curandStateXORWOW curandStateXORWOW_t;

namespace mc_emu {

constexpr int kXorwowSubsequenceBit = 67;

// Skips count * 2^first_bit steps of the vector.
inline void xorwow_skip(unsigned long long count, int first_bit, curandStateXORWOW_t* state) {
  unsigned v[5];
  for (int i = 0; i < 5; ++i) v[i] = state->v[i];
  ::mc_emu_xorwow_skip(count, first_bit, v);
  for (int i = 0; i < 5; ++i) state->v[i] = v[i];
}

constexpr unsigned kXorwowCount = 362437u;

}  // namespace mc_emu

inline void skipahead(unsigned long long count, curandStateXORWOW_t* state) {
  ::mc_emu::xorwow_skip(count, 0, state);
  state->d += ::mc_emu::kXorwowCount * static_cast<unsigned>(count);
}
// The counter repeats after 2^32 steps, so a subsequence leaves it alone.
inline void skipahead_sequence(unsigned long long count, curandStateXORWOW_t* state) {
  ::mc_emu::xorwow_skip(count, ::mc_emu::kXorwowSubsequenceBit, state);
}

inline void curand_init(unsigned long long seed, unsigned long long subsequence,
                        unsigned long long offset, curandStateXORWOW_t* state) {
  const unsigned low = 1099087573u * (static_cast<unsigned>(seed) ^ 0xAAD26B49u);
  const unsigned high = 2591861531u * (static_cast<unsigned>(seed >> 32) ^ 0xF7DCEFDDu);
  *state = curandStateXORWOW_t{};
  state->d = 6615241u + high + low;
  state->v[0] = 123456789u + low;
  state->v[1] = 362436069u ^ low;
  state->v[2] = 521288629u + high;
  state->v[3] = 88675123u ^ high;
  state->v[4] = 5783321u + low;
  skipahead_sequence(subsequence, state);
  skipahead(offset, state);
}

inline unsigned curand(curandStateXORWOW_t* state) {
  const unsigned t = state->v[0] ^ (state->v[0] >> 2);
  for (int i = 0; i < 4; ++i) state->v[i] = state->v[i + 1];
  state->v[4] = (state->v[3] ^ (state->v[3] << 4)) ^ (t ^ (t << 1));
  state->d += ::mc_emu::kXorwowCount;
  return state->v[4] + state->d;
}

#endif  // MC_EMU_CURAND_XORWOW_H_
