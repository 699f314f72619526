// SPDX-License-Identifier: Apache-2.0
#include "rl/score.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <variant>

#include <gtest/gtest.h>

#include "task/testing/verdict_generator.h"

namespace mc::rl {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::optional<double> score_at(double nu_low, const TrainingScoreOptions& options = {}) {
  task::Passed passed;
  passed.performance.emplace();
  passed.performance->speedup_eager = {9, nu_low, 10};
  task::Verdict verdict;
  verdict.outcome = passed;
  return training_score(verdict, options);
}

TEST(TrainingScore, EqualsRewardScoreWithoutASpeedUp) {
  for (size_t outcome = 0; outcome < std::variant_size_v<task::Outcome>; ++outcome) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
      task::Verdict verdict = task::generate_verdict(seed, outcome);
      if (auto* passed = std::get_if<task::Passed>(&verdict.outcome)) passed->performance.reset();
      EXPECT_EQ(training_score(verdict, {}), reward::score(verdict, {}))
          << "outcome " << outcome << ", seed " << seed;
    }
  }
}

TEST(TrainingScore, IgnoresNoiseInTiming) {
  EXPECT_EQ(score_at(1.0001), score_at(1));
  EXPECT_EQ(score_at(1.05), score_at(1));
  EXPECT_GT(*score_at(1.08), *score_at(1));
}

TEST(TrainingScore, RoundsTheSpeedUpToTheGrid) {
  EXPECT_EQ(score_at(1.98), score_at(2.02));
  EXPECT_NEAR(*score_at(1.98), 1.25, 1e-12);
  EXPECT_NEAR(*score_at(1.8), 1.2, 1e-12);
}

TEST(TrainingScore, EqualsRewardScoreWithoutAGrid) {
  const TrainingScoreOptions options{.score = {}, .speed = {.dead_zone = 0, .step = 0}};
  EXPECT_NEAR(*score_at(1.0123, options), 1 + 0.25 * 0.0123, 1e-12);
  EXPECT_NEAR(*score_at(0.4, options), 1, 1e-12);
}

TEST(OverlongPenalty, FallsFromTheMarginToTheLimit) {
  const OverlongOptions options{.tokens_max = 100, .margin = 20};
  EXPECT_EQ(overlong_penalty(3, options), 0);
  EXPECT_EQ(overlong_penalty(80, options), 0);
  EXPECT_EQ(overlong_penalty(85, options), -0.25);
  EXPECT_EQ(overlong_penalty(100, options), -1);
  EXPECT_EQ(overlong_penalty(100, {.tokens_max = 100, .margin = 0}), 0) << "it is off";
}

TEST(TrainingScore, AcceptsANonFiniteSpeedUp) {
  EXPECT_EQ(score_at(std::nan("")), 1);
  EXPECT_EQ(score_at(kInfinity), 1.5);
  EXPECT_EQ(score_at(-kInfinity), 1);
}

}  // namespace
}  // namespace mc::rl
