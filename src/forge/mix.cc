// SPDX-License-Identifier: Apache-2.0
#include "forge/mix.h"

#include <cmath>

#include "core/check.h"

namespace mc::forge {

Weights weights_of(const std::map<std::string, PassRate>& rates,
                   const std::set<std::string>& families) {
  Weights weights;
  double sum = 0;
  for (const std::string& family : families) {
    const auto found = rates.find(family);
    const PassRate rate = found == rates.end() ? PassRate{} : found->second;
    const double passes =
        (static_cast<double>(rate.passed) + 1) / (static_cast<double>(rate.judged) + 2);
    sum += weights[family] = kWeightMin + (1 - kWeightMin) * (1 - passes);
  }
  // Weights have three decimals, so that settings have the same text on every machine.
  for (auto& [family, weight] : weights) {
    weight = std::round(weight * static_cast<double>(weights.size()) / sum * 1000) / 1000;
  }
  return weights;
}

Weights equal_weights(const std::set<std::string>& families) {
  Weights weights;
  for (const std::string& family : families) weights[family] = 1;
  return weights;
}

std::string drawn_family(const Weights& weights, Random& random) {
  MC_CHECK(!weights.empty());
  double sum = 0;
  for (const auto& [family, weight] : weights) sum += weight;
  double left = random.unit() * sum;
  for (const auto& [family, weight] : weights) {
    if ((left -= weight) < 0) return family;
  }
  return weights.rbegin()->first;
}

}  // namespace mc::forge
