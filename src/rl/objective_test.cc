// SPDX-License-Identifier: Apache-2.0
#include "rl/objective.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace mc::rl {
namespace {

constexpr double kStep = 1e-6;

TEST(ClippedLoss, HasNoGradientWhereItIsClipped) {
  EXPECT_EQ(clipped_loss(std::log(1.3), 1, {}).gradient, 0);
  EXPECT_EQ(clipped_loss(std::log(0.7), -1, {}).gradient, 0);
  EXPECT_NEAR(clipped_loss(std::log(1.3), -1, {}).gradient, 1.3, 1e-12);
  EXPECT_NEAR(clipped_loss(std::log(0.7), 1, {}).gradient, -0.7, 1e-12);
}

TEST(ClippedLoss, IsMinusTheAdvantageForAnUnmovedPolicy) {
  for (const double A : {-2.0, 0.0, 0.5}) {
    EXPECT_EQ(clipped_loss(0, A, {}).value, -A);
    EXPECT_EQ(clipped_loss(0, A, {}).gradient, -A);
  }
}

TEST(ClippedLoss, IsFiniteForVeryLargeLogRatios) {
  EXPECT_TRUE(std::isfinite(clipped_loss(1e6, -1, {}).value));
  EXPECT_EQ(clipped_loss(1e6, -1, {}).gradient, 0);
}

TEST(ClippedLoss, EqualsItsFormulaAndItsGradientTheSlopeOnRandomTokens) {
  constexpr unsigned kSeed = 6;
  std::mt19937 random(kSeed);
  std::normal_distribution<double> normal;
  const auto formula = [](double x, double A) {
    const double r = std::exp(x);
    return -std::min(r * A, std::clamp(r, 0.8, 1.28) * A);
  };
  for (int i = 0; i < 2000; ++i) {
    const double x = 0.4 * normal(random);
    const double A = normal(random);
    if (std::abs(std::exp(x) - 0.8) < 1e-4 || std::abs(std::exp(x) - 1.28) < 1e-4) continue;
    const TokenLoss loss = clipped_loss(x, A, {});
    const double slope = (formula(x + kStep, A) - formula(x - kStep, A)) / (2 * kStep);
    EXPECT_NEAR(loss.value, formula(x, A), 1e-12) << "seed " << kSeed << ", case " << i;
    EXPECT_NEAR(loss.gradient, slope, 1e-6) << "seed " << kSeed << ", case " << i;
  }
}

TEST(Kl, IsNeverNegative) {
  constexpr unsigned kSeed = 7;
  std::mt19937 random(kSeed);
  std::normal_distribution<double> normal(0, 3);
  for (int i = 0; i < 2000; ++i) {
    EXPECT_GE(kl_estimate(normal(random)).value, 0) << "seed " << kSeed;
  }
  EXPECT_EQ(kl_estimate(0).value, 0);
  EXPECT_EQ(kl_estimate(0).gradient, 0);
}

TEST(Kl, IsAnUnbiasedEstimateOfTheKl) {
  const double p[] = {0.7, 0.2, 0.1};  // The policy.
  const double q[] = {0.5, 0.1, 0.4};  // The reference.
  double kl = 0, estimated = 0;
  for (int i = 0; i < 3; ++i) {
    kl += p[i] * std::log(p[i] / q[i]);
    estimated += p[i] * kl_estimate(std::log(q[i] / p[i])).value;
  }
  EXPECT_NEAR(estimated, kl, 1e-12);
}

TEST(Kl, GradientIsTheDerivativeOfTheValue) {
  for (const double log_u : {-3.0, -0.5, 0.0, 0.01, 0.5, 2.0}) {
    const double up = kl_estimate(log_u - kStep).value;  // The value after log pi_new increases.
    const double down = kl_estimate(log_u + kStep).value;
    EXPECT_NEAR(kl_estimate(log_u).gradient, (up - down) / (2 * kStep), 1e-6) << log_u;
  }
}

TEST(Kl, IsFiniteForVeryLargeLogRatios) {
  for (const double log_u : {1e5, -1e5}) {
    EXPECT_TRUE(std::isfinite(kl_estimate(log_u).value));
    EXPECT_EQ(kl_estimate(log_u).gradient, 0);
  }
}

}  // namespace
}  // namespace mc::rl
