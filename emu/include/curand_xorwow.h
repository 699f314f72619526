// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CURAND_XORWOW_H_
#define MC_EMU_CURAND_XORWOW_H_

// XORWOW (Marsaglia, "Xorshift RNGs", 2003) with cuRAND's interface.
//
// Theory: the five words v are a vector of 160 bits and one step multiplies it by a matrix over
// GF(2); the sixth, d, only counts.  To skip n steps we multiply by the powers M^(2^i) for the bits
// i of n; a subsequence is 2^67 steps.  The powers come from squaring, once a process.

#include <vector>

#include "cuda_runtime.h"

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

struct XorwowVector {
  unsigned words[5];
};

// Moves the vector by one step.
__attribute__((no_sanitize("thread"))) inline void xorwow_step(XorwowVector& v) {
  const unsigned t = v.words[0] ^ (v.words[0] >> 2);
  for (int i = 0; i < 4; ++i) v.words[i] = v.words[i + 1];
  v.words[4] = (v.words[3] ^ (v.words[3] << 4)) ^ (t ^ (t << 1));
}

// A matrix is the images of the 160 unit vectors.
struct XorwowMatrix {
  XorwowVector images[160];

  __attribute__((no_sanitize("thread"))) XorwowVector operator*(const XorwowVector& v) const {
    XorwowVector product{};
    for (int bit = 0; bit < 160; ++bit) {
      if ((v.words[bit / 32] >> (bit % 32) & 1u) == 0) continue;
      for (int i = 0; i < 5; ++i) product.words[i] ^= images[bit].words[i];
    }
    return product;
  }
};

constexpr int kXorwowSubsequenceBit = 67;

// M^(2^i) for i from 0 to 130.
inline const std::vector<XorwowMatrix>& xorwow_powers() {
  static const std::vector<XorwowMatrix> powers = [] {
    std::vector<XorwowMatrix> made(kXorwowSubsequenceBit + 64);
    for (int bit = 0; bit < 160; ++bit) {
      XorwowVector unit{};
      unit.words[bit / 32] = 1u << (bit % 32);
      xorwow_step(unit);
      made[0].images[bit] = unit;
    }
    for (size_t i = 1; i < made.size(); ++i) {
      for (int bit = 0; bit < 160; ++bit) {
        made[i].images[bit] = made[i - 1] * made[i - 1].images[bit];
      }
    }
    return made;
  }();
  return powers;
}

// Skips count * 2^first_bit steps of the vector.
inline void xorwow_skip(unsigned long long count, int first_bit, curandStateXORWOW_t* state) {
  XorwowVector v;
  for (int i = 0; i < 5; ++i) v.words[i] = state->v[i];
  for (int bit = first_bit; count != 0; count >>= 1, ++bit) {
    if (count & 1u) v = xorwow_powers()[static_cast<size_t>(bit)] * v;
  }
  for (int i = 0; i < 5; ++i) state->v[i] = v.words[i];
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
