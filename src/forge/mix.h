// SPDX-License-Identifier: Apache-2.0
//
// Mix: the weights with which families of operators are drawn.
//
// Weights are computed from the pass rates of a run of `bench`: a family at which a model fails
// gets more tasks, and a family that it solves gets fewer, but never none (MusaCoder, data mixing
// by prior diagnosis).  Rates are smoothed, so a few tasks have little influence.
#ifndef MC_FORGE_MIX_H_
#define MC_FORGE_MIX_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "forge/random.h"

namespace mc::forge {

using Weights = std::map<std::string, double>;  // The weights by family; their mean is 1.

struct PassRate {
  int64_t passed = 0;
  int64_t judged = 0;
};

// The weight of a family that always passes, before all weights are scaled to a mean of 1.
inline constexpr double kWeightMin = 0.1;

// The weight kWeightMin + (1 - kWeightMin) * (1 - (passed + 1) / (judged + 2)), scaled.  A family
// that was not judged counts as passing half of the time.
Weights weights_of(const std::map<std::string, PassRate>& rates,
                   const std::set<std::string>& families);

// Equal weights: a balanced set for diagnosis.
Weights equal_weights(const std::set<std::string>& families);

// A random family, drawn by weight.  REQUIRES: `weights` is not empty.
std::string drawn_family(const Weights& weights, Random& random);

}  // namespace mc::forge

#endif  // MC_FORGE_MIX_H_
