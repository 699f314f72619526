// SPDX-License-Identifier: Apache-2.0
#include "rl/advantage.h"

#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace mc::rl {
namespace {

using Rewards = std::vector<std::optional<double>>;

TEST(GroupAdvantage, IsExactlyZeroWithoutSpread) {
  for (const double reward : {0.1, 1.0, -1.0, 0.3125}) {
    const auto group = group_advantage(Rewards(8, reward), {});
    EXPECT_EQ(group.status, GroupStatus::kNoSpread);
    for (const auto& A : group.advantage) EXPECT_EQ(A, 0) << reward;
  }
}

TEST(GroupAdvantage, IsPositiveForARepairedFailureAsInThePaper) {
  Rewards rewards(8, -1.0);
  rewards[3] = -0.4;
  const auto group = group_advantage(rewards, {});
  EXPECT_NEAR(*group.advantage[3], 2.47, 0.01);
  EXPECT_NEAR(*group.advantage[0], -0.35, 0.01);
}

TEST(GroupAdvantage, IsLimitedByTheFloorOfTheSpread) {
  const Rewards rewards{-0.4, -1.0, -1.0, -1.0};
  const auto group = group_advantage(rewards, {.std_floor = 1});
  EXPECT_NEAR(*group.advantage[0], 0.45, 1e-5);
}

TEST(GroupAdvantage, LeavesOutSamplesWithoutAReward) {
  const auto with_hole = group_advantage(Rewards{1.2, std::nullopt, -1.0, -0.4}, {});
  const auto without = group_advantage(Rewards{1.2, -1.0, -0.4}, {});
  EXPECT_EQ(with_hole.advantage, (Rewards{without.advantage[0], std::nullopt, without.advantage[1],
                                          without.advantage[2]}));
  EXPECT_EQ(with_hole.num_scored, 3U);
}

TEST(GroupAdvantage, DropsAGroupWithFewerThanHalfOfItsRewards) {
  for (size_t n = 1; n <= 9; ++n) {
    for (size_t num_scored = 0; num_scored <= n; ++num_scored) {
      Rewards rewards(n);
      for (size_t i = 0; i < num_scored; ++i) rewards[i] = static_cast<double>(i);
      const auto group = group_advantage(rewards, {});
      const bool is_dropped = num_scored < 2 || 2 * num_scored < n;
      EXPECT_EQ(group.status == GroupStatus::kDropped, is_dropped) << num_scored << " of " << n;
      for (const auto& A : group.advantage) EXPECT_FALSE(is_dropped && A.has_value());
    }
  }
  EXPECT_EQ(group_advantage({}, {}).status, GroupStatus::kDropped);
}

TEST(GroupAdvantage, EqualsItsFormulaOnRandomGroups) {
  constexpr unsigned kSeed = 5;
  std::mt19937 random(kSeed);
  std::uniform_real_distribution<double> reward(-1, 1.7);
  for (int i = 0; i < 500; ++i) {
    std::vector<double> R(2 + random() % 15);
    for (double& value : R) value = reward(random);
    double mean = 0;
    for (const double value : R) mean += value / static_cast<double>(R.size());
    double variance = 0;
    for (const double value : R) {
      variance += std::pow(value - mean, 2) / (static_cast<double>(R.size()) - 1);
    }
    const auto group = group_advantage(Rewards(R.begin(), R.end()), {});
    for (size_t k = 0; k < R.size(); ++k) {
      EXPECT_NEAR(*group.advantage[k], (R[k] - mean) / (std::sqrt(variance) + 1e-6), 1e-9)
          << "seed " << kSeed << ", case " << i;
    }
  }
}

TEST(GroupAdvantageDeathTest, RejectsANonFiniteReward) {
  const Rewards rewards{std::numeric_limits<double>::quiet_NaN(), 1.0};
  EXPECT_DEATH(group_advantage(rewards, {}), "isfinite");
}

}  // namespace
}  // namespace mc::rl
