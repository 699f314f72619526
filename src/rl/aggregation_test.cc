// SPDX-License-Identifier: Apache-2.0
#include "rl/aggregation.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace mc::rl {
namespace {

TEST(Aggregation, WeightsOfMeansSumToOne) {
  constexpr unsigned kSeed = 18;
  std::mt19937 random(kSeed);
  for (int i = 0; i < 100; ++i) {
    std::vector<size_t> lengths(1 + random() % 9);
    BatchSize size{.num_sequences = lengths.size(), .num_tokens = 0};
    for (size_t& length : lengths) size.num_tokens += length = 1 + random() % 100;
    double sequence_mean = 0;
    double token_mean = 0;
    double dr_grpo = 0;
    for (const size_t length : lengths) {
      const auto tokens = static_cast<double>(length);
      sequence_mean += tokens * token_weight(SequenceMean{}, length, size);
      token_mean += tokens * token_weight(TokenMean{}, length, size);
      dr_grpo += tokens * token_weight(DrGrpo{100}, length, size);
    }
    EXPECT_NEAR(sequence_mean, 1, 1e-12) << "seed " << kSeed << ", case " << i;
    EXPECT_NEAR(token_mean, 1, 1e-12) << "seed " << kSeed << ", case " << i;
    const auto all = static_cast<double>(size.num_tokens);
    EXPECT_NEAR(dr_grpo, all / (100.0 * static_cast<double>(lengths.size())), 1e-12);
  }
}

TEST(Aggregation, GivesALongSequenceTheWeightOfAShortOneByDefault) {
  const BatchSize size{.num_sequences = 2, .num_tokens = 1001};
  EXPECT_DOUBLE_EQ(token_weight(SequenceMean{}, 1, size), 0.5);
  EXPECT_DOUBLE_EQ(1000 * token_weight(SequenceMean{}, 1000, size), 0.5);
}

TEST(Aggregation, GivesASequenceWithoutTokensNoWeight) {
  EXPECT_EQ(token_weight(SequenceMean{}, 0, {.num_sequences = 1, .num_tokens = 0}), 0);
}

TEST(Aggregation, CountsTrainedTokens) {
  EXPECT_EQ(count_trained(std::vector<uint8_t>{0, 1, 7, 0}), 2U);
}

}  // namespace
}  // namespace mc::rl
