// SPDX-License-Identifier: Apache-2.0
#include "timing/statistics.h"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace mc::timing {
namespace {

TEST(EstimateMedian, TakesTheMiddleOfAnOddNumber) {
  const std::vector<double> samples = {5, 1, 3};
  EXPECT_EQ(estimate_median(samples), (task::Estimate{3, 1, 5}));
}

TEST(EstimateMedian, TakesTheMeanOfTheMiddleTwoOfAnEvenNumber) {
  const std::vector<double> samples = {4, 1, 2, 3};
  EXPECT_EQ(estimate_median(samples).median, 2.5);
}

// The ranks (from 1) that enclose the median with 95 %, from tables of the binomial distribution.
TEST(EstimateMedian, LeavesOutAsManyAsTheBinomialDistributionAllows) {
  struct Case {
    int n, low, high;
  };
  for (const Case& c : {Case{5, 1, 5}, Case{6, 1, 6}, Case{8, 1, 8}, Case{9, 2, 8}, Case{11, 2, 10},
                        Case{12, 3, 10}, Case{15, 4, 12}, Case{20, 6, 15}, Case{25, 8, 18}}) {
    std::vector<double> samples;
    for (int i = 1; i <= c.n; ++i) samples.push_back(i);
    EXPECT_EQ(estimate_median(samples).low, c.low) << c.n;
    EXPECT_EQ(estimate_median(samples).high, c.high) << c.n;
  }
}

TEST(EstimateMedian, ContainsTheTrueMedianInNineteenOfTwentyTries) {
  std::mt19937 random(7);
  std::lognormal_distribution<double> skewed(0, 1);
  int contained = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<double> samples(11);
    for (double& sample : samples) sample = skewed(random);
    const task::Estimate estimate = estimate_median(samples);
    contained += estimate.low <= 1 && 1 <= estimate.high;
  }
  EXPECT_GE(contained, 1900);
}

TEST(Widened, AddsInQuadratureOfLogarithms) {
  const task::Estimate wide = widened({2, 2 / 1.03, 2 * 1.03}, 0.02);
  const double expected = std::exp(std::hypot(std::log(1.03), 1.96 * 0.02));
  EXPECT_NEAR(wide.high / wide.median, expected, 1e-12);
  EXPECT_NEAR(wide.median / wide.low, expected, 1e-12);
}

TEST(Widened, LeavesAnIntervalWithoutASpread) {
  const task::Estimate wide = widened({2, 1.9, 2.1}, 0);
  EXPECT_NEAR(wide.low, 1.9, 1e-12);
  EXPECT_NEAR(wide.high, 2.1, 1e-12);
}

}  // namespace
}  // namespace mc::timing
