// SPDX-License-Identifier: Apache-2.0
#include "rl/prime_echo.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>

#include "core/check.h"
#include "rl/score.h"

namespace mc::rl {

std::optional<double> prime_echo(std::span<const std::optional<double>> s,
                                 const PrimeEchoOptions& options) {
  MC_CHECK(!s.empty());
  MC_CHECK(options.alpha >= 0 && options.alpha <= 1);
  if (!s[0]) return std::nullopt;
  double best = *s[0];
  double early = 0;
  bool has_passed = false;
  for (size_t t = 0; t < s.size(); ++t) {
    if (!s[t]) return std::nullopt;
    MC_CHECK(std::isfinite(*s[t]));
    best = std::max(best, *s[t]);
    if (has_passed || *s[t] < kScorePassed) continue;
    has_passed = true;
    if (t < options.b_early.size()) early = options.b_early[t];
  }
  return options.alpha * *s[0] + (1 - options.alpha) * best + early;
}

}  // namespace mc::rl
