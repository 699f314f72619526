// SPDX-License-Identifier: Apache-2.0
#include "rl/mirror_pop.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <vector>

#include "core/check.h"

namespace mc::rl {
namespace {

constexpr double kAutoFactor = 4;
constexpr double kAutoDeltaMin = 0.02;
constexpr double kAutoDeltaMax = 0.1;

// REQUIRES: values are not empty.
double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

}  // namespace

Drift drift(std::span<const double> logp_old, std::span<const double> logp_rollout,
            std::span<const uint8_t> mask) {
  MC_CHECK(logp_old.size() == mask.size() && logp_rollout.size() == mask.size());
  Drift found{.log_rho_min = std::numeric_limits<double>::infinity()};
  for (size_t t = 0; t < mask.size(); ++t) {
    if (mask[t] == 0) continue;
    MC_CHECK(std::isfinite(logp_old[t]));
    ++found.num_tokens;
    if (std::isnan(logp_rollout[t])) continue;
    const double log_rho = logp_old[t] - logp_rollout[t];
    ++found.num_known;
    found.mean_abs += std::abs(log_rho);
    found.mean_signed += log_rho;
    found.log_rho_min = std::min(found.log_rho_min, log_rho);
  }
  if (found.num_known == 0) return {.num_tokens = found.num_tokens};
  found.mean_abs /= static_cast<double>(found.num_known);
  found.mean_signed /= static_cast<double>(found.num_known);
  return found;
}

bool keeps(const Drift& drift, const MirrorPopOptions& options) {
  MC_CHECK(options.delta >= 0 && (!options.token_veto || *options.token_veto > 0));
  if (2 * drift.num_known <= drift.num_tokens) return false;
  if (options.token_veto && drift.log_rho_min < std::log(*options.token_veto)) return false;
  const bool is_signed = options.mean == DriftMean::kSigned;
  return (is_signed ? std::abs(drift.mean_signed) : drift.mean_abs) <= options.delta;
}

double delta_auto(const DriftWindow& window) {
  if (window.mean_abs.empty()) return MirrorPopOptions{}.delta;
  return std::clamp(kAutoFactor * median(window.mean_abs), kAutoDeltaMin, kAutoDeltaMax);
}

void observe(DriftWindow& window, std::span<const Drift> drifts) {
  std::vector<double>& values = window.mean_abs;
  for (const Drift& drift : drifts) {
    if (drift.num_known > 0 && std::isfinite(drift.mean_abs)) values.push_back(drift.mean_abs);
  }
  if (values.size() <= kDriftWindow) return;
  values.erase(values.begin(), std::prev(values.end(), kDriftWindow));
}

}  // namespace mc::rl
