// SPDX-License-Identifier: Apache-2.0
#include "rl/mirror_pop.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/check.h"

namespace mc::rl {
Drift drift(std::span<const double> logp_old, std::span<const double> logp_rollout,
            std::span<const uint8_t> mask) {
  MC_CHECK(logp_old.size() == mask.size() && logp_rollout.size() == mask.size());
  Drift found;
  for (size_t t = 0; t < mask.size(); ++t) {
    if (mask[t] == 0) continue;
    MC_CHECK(std::isfinite(logp_old[t]));
    ++found.num_tokens;
    if (std::isnan(logp_rollout[t])) continue;
    const double log_rho = logp_old[t] - logp_rollout[t];
    ++found.num_known;
    found.mean_abs += std::abs(log_rho);
    found.mean_signed += log_rho;
  }
  if (found.num_known == 0) return {.num_tokens = found.num_tokens};
  found.mean_abs /= static_cast<double>(found.num_known);
  found.mean_signed /= static_cast<double>(found.num_known);
  return found;
}

bool keeps(const Drift& drift, const MirrorPopOptions& options) {
  MC_CHECK(options.delta >= 0);
  if (2 * drift.num_known <= drift.num_tokens) return false;
  const bool is_signed = options.mean == DriftMean::kSigned;
  return (is_signed ? std::abs(drift.mean_signed) : drift.mean_abs) <= options.delta;
}

}  // namespace mc::rl
