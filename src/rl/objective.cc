// SPDX-License-Identifier: Apache-2.0
#include "rl/objective.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace mc::rl {
namespace {

double held(double log_ratio) { return std::clamp(log_ratio, -kLogRatioMax, kLogRatioMax); }

// 1 if clamping to kLogRatioMax lets the gradient through, else 0.
double is_held_open(double log_ratio) { return std::abs(log_ratio) <= kLogRatioMax ? 1 : 0; }

Clipped clipped_by(double r, double A, const ClipOptions& options) {
  if (A > 0 && r > 1 + options.eps_high) return Clipped::kHigh;
  if (A < 0 && r < 1 - options.eps_low) return Clipped::kLow;
  return Clipped::kNo;
}

}  // namespace

TokenLoss clipped_loss(double log_ratio, double A, const ClipOptions& options) {
  MC_CHECK(options.eps_low >= 0 && options.eps_low <= 1 && options.eps_high >= 0);
  MC_CHECK(std::isfinite(log_ratio) && std::isfinite(A));
  const double r = std::exp(held(log_ratio));
  const Clipped clipped = clipped_by(r, A, options);
  switch (clipped) {
    case Clipped::kHigh:
      return {-(1 + options.eps_high) * A, 0, clipped};
    case Clipped::kLow:
      return {-(1 - options.eps_low) * A, 0, clipped};
    case Clipped::kNo:
      break;
  }
  return {-r * A, -r * A * is_held_open(log_ratio), clipped};
}

KlEstimate kl_estimate(double log_u) {
  MC_CHECK(std::isfinite(log_u));
  const double x = held(log_u);
  return {std::expm1(x) - x, -std::expm1(x) * is_held_open(log_u)};
}

}  // namespace mc::rl
