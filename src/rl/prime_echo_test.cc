// SPDX-License-Identifier: Apache-2.0
#include "rl/prime_echo.h"

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace mc::rl {
namespace {

using Turns = std::vector<std::optional<double>>;

double wrong(double q) { return -0.5 + 0.5 * q; }

TEST(PrimeEcho, IsTheTableOfTheDocument) {
  const struct {
    Turns s;
    double R;
  } kTable[] = {
      {{1.0}, 1.2},
      {{1.5}, 1.7},
      {{wrong(0.9), 1.0}, 0.3125},
      {{wrong(0.5), wrong(0.9), 1.0}, 0.0625},
      {{wrong(0.99), wrong(0.99), wrong(0.99)}, -0.005},
      {{-1.0, 1.5}, -0.275},
      {{-1.0, 1.0}, -0.4},
      {{-1.0, -1.0, 1.0}, -0.5},
      {{-1.0, wrong(0.9), wrong(0.9)}, -0.7625},
      {{-1.0, -1.0, -1.0}, -1},
  };
  for (const auto& row : kTable) EXPECT_NEAR(*prime_echo(row.s, {}), row.R, 1e-12) << row.R;
}

TEST(PrimeEcho, HasNoValueWhereATurnHasNoScore) {
  for (const Turns& s : {Turns{std::nullopt}, Turns{-1.0, std::nullopt}, Turns{std::nullopt, 1.0},
                         Turns{-1.0, std::nullopt, 1.0}}) {
    EXPECT_EQ(prime_echo(s, {}), std::nullopt);
  }
}

TEST(PrimeEcho, GivesNoBonusForAPassAfterTheLastBonusTurn) {
  EXPECT_NEAR(*prime_echo(Turns{-1.0, -1.0, -1.0, 1.0}, {}), -0.5, 1e-12);
}

TEST(PrimeEcho, NeverPutsARepairAboveAPassAtTheFirstTurn) {
  constexpr unsigned kSeed = 3;
  std::mt19937 random(kSeed);
  std::uniform_real_distribution<double> failed(-1, -1e-3);
  std::uniform_real_distribution<double> passed(1, 1.5);
  for (int i = 0; i < 1000; ++i) {
    const double repaired = *prime_echo(Turns{failed(random), passed(random)}, {});
    EXPECT_LT(repaired, *prime_echo(Turns{1.0}, {})) << "seed " << kSeed << ", case " << i;
  }
}

TEST(PrimeEcho, EqualsItsFormulaOnRandomEpisodes) {
  constexpr unsigned kSeed = 4;
  std::mt19937 random(kSeed);
  std::uniform_real_distribution<double> score(-1, 1.5);
  for (int i = 0; i < 1000; ++i) {
    const Turns s{score(random), score(random), score(random)};
    const double b = *s[0] >= 1 ? 0.3 : *s[1] >= 1 ? 0.15 : *s[2] >= 1 ? 0.05 : 0;
    const double R = 0.6 * *s[0] + 0.4 * std::max({*s[0], *s[1], *s[2]}) + b;
    const auto got = prime_echo(s, {.alpha = 0.6, .b_early = {0.3, 0.15, 0.05}});
    EXPECT_NEAR(*got, R, 1e-12) << "seed " << kSeed << ", case " << i;
  }
}

}  // namespace
}  // namespace mc::rl
