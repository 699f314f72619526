// SPDX-License-Identifier: Apache-2.0
#include "model/sampling.h"

#include <cmath>
#include <map>
#include <set>
#include <vector>

#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

namespace mc::model {
namespace {

// The probabilities are 0.5, 0.3, 0.15 and 0.05, in another order.
const std::vector<float> kLogits = {std::log(0.3F), std::log(0.05F), std::log(0.5F),
                                    std::log(0.15F)};

std::map<int32_t, double> shares(const Sampling& sampling) {
  constexpr int kDraws = 20000;
  std::map<int32_t, double> counts;
  for (int i = 0; i < kDraws; ++i) {
    counts[choose_token(kLogits, sampling, draw(5, "row", 0, i)).token] += 1.0 / kDraws;
  }
  return counts;
}

TEST(Sampling, TemperatureZeroTakesTheLikeliest) {
  EXPECT_EQ(choose_token(kLogits, {.temperature = 0}, 0.99).token, 2);
}

TEST(Sampling, TokenFrequenciesEqualTheirProbabilities) {
  auto got = shares({});
  EXPECT_NEAR(got[2], 0.5, 0.015);
  EXPECT_NEAR(got[0], 0.3, 0.015);
  EXPECT_NEAR(got[1], 0.05, 0.015);
}

TEST(Sampling, TheNucleusIsTheSmallestSetThatReachesTopP) {
  auto got = shares({.temperature = 1, .top_p = 0.6});
  EXPECT_EQ(got.size(), 2U);
  EXPECT_NEAR(got[2], 0.5 / 0.8, 0.015);
  EXPECT_EQ(shares({.temperature = 1, .top_p = 0.4}).size(), 1U);
}

TEST(Sampling, LogProbsAreOfTheFullSoftmaxAtTheTemperature) {
  const Choice all = choose_token(kLogits, {.temperature = 1, .top_p = 0.4}, 0.5);
  EXPECT_NEAR(all.log_prob, std::log(0.5), 1e-6);
  const Choice cold = choose_token(kLogits, {.temperature = 0.5}, 0);
  const double total = 0.09 + 0.0025 + 0.25 + 0.0225;
  EXPECT_NEAR(cold.log_prob, std::log(0.09 / total), 1e-6);
}

TEST(Sampling, TheDeviceDrawsTheSameTokensAsTheHost) {
  constexpr int64_t kRows = 200;
  constexpr int64_t kVocabulary = 500;
  const at::Tensor logits = at::randn({kRows, kVocabulary}).mul(3);
  std::vector<double> uniforms;
  for (int64_t i = 0; i < kRows; ++i) uniforms.push_back(draw(3, "row", 0, i));
  logits.select(1, 7).copy_(logits.select(1, 3));  // Two columns with equal logits.
  for (const Sampling& sampling :
       {Sampling{.temperature = 1.3}, Sampling{.temperature = 0.7, .top_p = 0.9},
        Sampling{.temperature = 1, .top_p = 1e-6}, Sampling{.temperature = 0}}) {
    const std::vector<Choice> got = choose_on_device(logits, sampling, uniforms);
    for (size_t i = 0; i < uniforms.size(); ++i) {
      const Choice one = choose_token(
          {logits.const_data_ptr<float>() + i * kVocabulary, static_cast<size_t>(kVocabulary)},
          sampling, uniforms[i]);
      EXPECT_EQ(got[i].token, one.token) << i << " at top_p " << sampling.top_p;
      EXPECT_NEAR(got[i].log_prob, one.log_prob, 1e-6);
    }
  }
}

TEST(Sampling, TheDeviceNeverDrawsBeyondTheLastToken) {
  const at::Tensor logits = at::tensor({0.0F, -1e30F}).unsqueeze(0);
  const std::vector<double> uniforms = {std::nextafter(1.0, 0.0)};
  EXPECT_EQ(choose_on_device(logits, {.temperature = 1}, uniforms)[0].token, 0);
}

TEST(Sampling, DrawsDependOnEveryPartOfTheirKey) {
  const std::set<double> draws = {draw(1, "a", 0, 0), draw(2, "a", 0, 0), draw(1, "b", 0, 0),
                                  draw(1, "a", 1, 0), draw(1, "a", 0, 1)};
  EXPECT_EQ(draws.size(), 5U);
  EXPECT_EQ(draw(1, "a", 0, 0), draw(1, "a", 0, 0));
}

}  // namespace
}  // namespace mc::model
