// SPDX-License-Identifier: Apache-2.0
//
// Random numbers without state: each number is a function of a seed and of its purpose.  So a
// resumed run draws the same numbers as an uninterrupted one, in any order and in any language.
#ifndef MC_RL_RANDOM_H_
#define MC_RL_RANDOM_H_

#include <cstdint>

namespace mc::rl {

struct DrawId {
  uint64_t seed = 0;
  uint64_t step = 0;
  uint64_t slot = 0;  // The index of the prompt within its step.
};

// A number in [0, 1), a multiple of 2^-53: x = mix(mix(mix(seed) + step) + slot), and the result is
// the upper 53 bits of x / 2^64.  mix is a step of SplitMix64 (Steele, Lea, Flood 2014) from the
// state x, with additions modulo 2^64.
double uniform(const DrawId& id);

}  // namespace mc::rl

#endif  // MC_RL_RANDOM_H_
