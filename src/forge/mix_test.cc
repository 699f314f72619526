// SPDX-License-Identifier: Apache-2.0
#include "forge/mix.h"

#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace mc::forge {
namespace {

const std::set<std::string> kFamilies = {"matmul", "pooling", "reduction", "sort"};

TEST(Mix, GivesFailingFamiliesMoreAndEveryFamilySome) {
  const Weights weights = weights_of(
      {{"matmul", {0, 1000}}, {"pooling", {500, 1000}}, {"reduction", {1000, 1000}}}, kFamilies);
  ASSERT_EQ(weights.size(), kFamilies.size());
  EXPECT_GT(weights.at("matmul"), weights.at("pooling"));
  EXPECT_GT(weights.at("pooling"), weights.at("reduction"));
  EXPECT_GT(weights.at("reduction"), 0);
  // A family that was not judged counts as passing half of the time.
  EXPECT_DOUBLE_EQ(weights.at("sort"), weights.at("pooling"));
  double sum = 0;
  for (const auto& [family, weight] : weights) sum += weight;
  EXPECT_NEAR(sum / 4, 1, 1e-3);
}

TEST(Mix, FollowsTheFormulaOfItsHeader) {
  const std::map<std::string, PassRate> rates = {{"matmul", {1, 3}}, {"sort", {7, 9}}};
  const double matmul = 0.1 + 0.9 * (1 - 2.0 / 5), sort = 0.1 + 0.9 * (1 - 8.0 / 11);
  const Weights weights = weights_of(rates, {"matmul", "sort"});
  EXPECT_NEAR(weights.at("matmul"), 2 * matmul / (matmul + sort), 0.0005);
  EXPECT_NEAR(weights.at("sort"), 2 * sort / (matmul + sort), 0.0005);
}

TEST(Mix, GivesAFewTasksLittleInfluence) {
  const Weights weights = weights_of({{"matmul", {0, 1}}, {"sort", {0, 100}}}, kFamilies);
  EXPECT_LT(weights.at("matmul"), weights.at("sort"));
}

TEST(Mix, DrawsEachFamilyInProportionToItsWeight) {
  constexpr int kDraws = 20'000;
  const Weights weights = {{"matmul", 2.0}, {"pooling", 0.0}, {"sort", 1.0}};
  std::map<std::string, int> counts;
  for (int i = 0; i < kDraws; ++i) {
    Random random(7, "mix_test", i);
    ++counts[drawn_family(weights, random)];
  }
  EXPECT_EQ(counts["pooling"], 0);
  EXPECT_NEAR(counts["matmul"], kDraws * 2 / 3, kDraws / 50);
  EXPECT_EQ(counts["matmul"] + counts["sort"], kDraws);
}

}  // namespace
}  // namespace mc::forge
