// SPDX-License-Identifier: Apache-2.0
#include "rl/advantage.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/check.h"

namespace mc::rl {
namespace {

std::vector<double> scored(std::span<const std::optional<double>> rewards) {
  std::vector<double> R;
  for (const auto& reward : rewards) {
    if (!reward) continue;
    MC_CHECK(std::isfinite(*reward));
    R.push_back(*reward);
  }
  return R;
}

double mean_of(std::span<const double> R) {
  double sum = 0;
  for (const double value : R) sum += value;
  return R.empty() ? 0 : sum / static_cast<double>(R.size());
}

double std_of(std::span<const double> R, double mean) {
  if (R.size() < 2) return 0;
  double sum = 0;
  for (const double value : R) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(R.size() - 1));
}

GroupStatus fate_of(std::span<const double> R, size_t n, double spread_min) {
  if (R.size() < 2 || 2 * R.size() < n) return GroupStatus::kDropped;
  const auto [low, high] = std::minmax_element(R.begin(), R.end());
  return *high - *low <= spread_min ? GroupStatus::kNoSpread : GroupStatus::kSpread;
}

}  // namespace

void give_minimum(std::span<std::optional<double>> rewards, std::span<const size_t> unsupported) {
  const std::vector<double> R = scored(rewards);
  for (const size_t i : unsupported) {
    MC_CHECK(i < rewards.size() && !rewards[i]);
    if (!R.empty()) rewards[i] = std::ranges::min(R);
  }
}

GroupAdvantage group_advantage(std::span<const std::optional<double>> rewards,
                               const AdvantageOptions& options) {
  MC_CHECK(options.eps >= 0 && options.spread_min >= 0 && options.std_floor >= 0);
  const std::vector<double> R = scored(rewards);
  GroupAdvantage group;
  group.num_scored = R.size();
  group.mean = mean_of(R);
  group.std = std_of(R, group.mean);
  group.status = fate_of(R, rewards.size(), options.spread_min);
  group.advantage.resize(rewards.size());
  if (group.status == GroupStatus::kDropped) return group;

  const double scale = options.scale == AdvantageScale::kNone
                           ? 1
                           : std::max(group.std, options.std_floor) + options.eps;
  for (size_t i = 0; i < rewards.size(); ++i) {
    if (!rewards[i]) continue;
    const bool has_spread = group.status == GroupStatus::kSpread;
    group.advantage[i] = has_spread ? (*rewards[i] - group.mean) / scale : 0;
  }
  return group;
}

}  // namespace mc::rl
