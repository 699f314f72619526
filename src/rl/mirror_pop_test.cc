// SPDX-License-Identifier: Apache-2.0
#include "rl/mirror_pop.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace mc::rl {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The drift of a sequence whose log rho are given, all of them trained.
Drift drift_of(const std::vector<double>& log_rho) {
  std::vector<double> rollout;
  for (const double x : log_rho) rollout.push_back(-x);
  return drift(std::vector<double>(log_rho.size()), rollout,
               std::vector<uint8_t>(log_rho.size(), 1));
}

TEST(MirrorPop, DropsASequenceWhoseLogRatiosCancelInTheMean) {
  std::vector<double> log_rho(4000);
  for (size_t i = 0; i < 200; ++i) log_rho[i * 20] = i % 2 == 0 ? 1.001 : -1.001;
  const Drift found = drift_of(log_rho);
  EXPECT_NEAR(found.mean_signed, 0, 1e-9);
  EXPECT_FALSE(keeps(found, {}));
  EXPECT_TRUE(keeps(found, {.mean = DriftMean::kSigned}));
}

TEST(MirrorPop, TheSignedMeanRejectsADriftOfEitherSign) {
  const MirrorPopOptions options{.mean = DriftMean::kSigned};
  EXPECT_FALSE(keeps(drift_of({0.1, 0.1}), options));
  EXPECT_FALSE(keeps(drift_of({-0.1, -0.1}), options));
  EXPECT_FALSE(keeps(drift_of({0, kNan}), options));
}

TEST(MirrorPop, KeepsASequenceAtDelta) {
  const Drift found = drift_of({0.0625, -0.0625, 0.125, 0});
  EXPECT_EQ(found.mean_abs, 0.0625);
  EXPECT_TRUE(keeps(found, {.delta = 0.0625}));
  EXPECT_FALSE(keeps(found, {.delta = std::nextafter(0.0625, 0)}));
}

TEST(MirrorPop, DropsASequenceWithoutTrainedTokens) {
  EXPECT_FALSE(keeps(drift({}, {}, {}), {}));
  const std::vector<double> x{-1, -2};
  EXPECT_FALSE(keeps(drift(x, x, std::vector<uint8_t>{0, 0}), {}));
}

TEST(MirrorPop, NeverReadsTokensThatAreNotTrained) {
  const std::vector<double> old{-1, kNan, -2, kInfinity};
  const std::vector<double> rollout{-1.01, 0, -2.01, kNan};
  const Drift found = drift(old, rollout, std::vector<uint8_t>{1, 0, 1, 0});
  EXPECT_NEAR(found.mean_abs, 0.01, 1e-12);
  EXPECT_TRUE(keeps(found, {}));
}

TEST(MirrorPop, DoesNotCountATokenThatTheGeneratorDoesNotKnow) {
  const Drift found = drift_of({0.01, kNan, 0.03});
  EXPECT_EQ(found.num_tokens, 3U);
  EXPECT_NEAR(found.mean_abs, 0.02, 1e-12);
  EXPECT_TRUE(keeps(found, {}));
  EXPECT_FALSE(keeps(drift_of({0.01, kNan, 0.3}), {}));
}

TEST(MirrorPop, DropsASequenceOfWhichTheGeneratorKnowsNoMoreThanHalf) {
  EXPECT_FALSE(keeps(drift_of({0, kNan}), {}));
  EXPECT_FALSE(keeps(drift_of({kNan, kNan}), {}));
}

TEST(MirrorPop, DropsASequenceWithAnInfiniteLogProbability) {
  EXPECT_FALSE(keeps(drift_of({0, kInfinity}), {}));
  EXPECT_FALSE(keeps(drift_of({0, -kInfinity}), {}));
}

TEST(MirrorPop, EqualsItsFormulaOnRandomSequences) {
  constexpr unsigned kSeed = 8;
  std::mt19937 random(kSeed);
  std::normal_distribution<double> normal(0, 0.06);
  for (int i = 0; i < 300; ++i) {
    const size_t size = 1 + random() % 50;
    std::vector<double> old(size);
    std::vector<double> rollout(size);
    std::vector<uint8_t> mask(size);
    std::vector<double> sizes;
    for (size_t t = 0; t < size; ++t) {
      mask[t] = random() % 4 == 0 ? 0 : 1;
      old[t] = -std::abs(normal(random)) * 10;
      rollout[t] = old[t] + normal(random);
      if (mask[t] == 1) sizes.push_back(std::abs(old[t] - rollout[t]));
    }
    const double mean = std::accumulate(sizes.begin(), sizes.end(), 0.0) /
                        static_cast<double>(std::max<size_t>(sizes.size(), 1));
    EXPECT_EQ(keeps(drift(old, rollout, mask), {}), !sizes.empty() && mean <= 0.05)
        << "seed " << kSeed << ", case " << i;
  }
}

}  // namespace
}  // namespace mc::rl
