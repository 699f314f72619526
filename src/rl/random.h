// SPDX-License-Identifier: Apache-2.0
//
// Random numbers without state: each is a function of a seed and of what it is for, so a run that
// was resumed draws what one without a break draws, in any order and in any language.
#ifndef MC_RL_RANDOM_H_
#define MC_RL_RANDOM_H_

#include <cstdint>

namespace mc::rl {

struct DrawId {
  uint64_t seed = 0;
  uint64_t step = 0;
  uint64_t slot = 0;  // The slot of the step's prompts.
};

// In [0, 1), a multiple of 2^-53: x = mix(mix(mix(seed) + step) + slot), x / 2^64 cut to 53 bits.
// mix is a step of SplitMix64 (Steele, Lea, Flood 2014) from the state x, additions modulo 2^64.
double uniform(const DrawId& id);

}  // namespace mc::rl

#endif  // MC_RL_RANDOM_H_
