// SPDX-License-Identifier: Apache-2.0
//
// Aggregation of token losses into the loss of a batch: each trained token has a weight w, and L =
// sum_t w_t l_t.  The weights contain the whole aggregation, so neither packing nor micro-batches
// can change the result.
//
//   SequenceMean  w = 1 / (N |o_i|)    mean over sequences of the mean over their tokens (GRPO)
//   TokenMean     w = 1 / sum_i |o_i|  mean over the tokens (DAPO)
//   DrGrpo        w = 1 / (N L_max)    no division by a sequence's own length
//
// N and sum |o_i| count every sequence of the batch, also those that MirrorPop rejects and those
// without a reward.  Such sequences add nothing to the loss, and the others keep their weights.
#ifndef MC_RL_AGGREGATION_H_
#define MC_RL_AGGREGATION_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

namespace mc::rl {

struct SequenceMean {};
struct TokenMean {};
struct DrGrpo {
  double length_max = 0;  // The maximum length of a response, in tokens; > 0.
};
using Aggregation = std::variant<SequenceMean, TokenMean, DrGrpo>;

// The size of a whole batch, over all micro-batches and ranks, before any rejection.
struct BatchSize {
  size_t num_sequences = 0;  // N
  size_t num_tokens = 0;     // The number of trained tokens, sum_i |o_i|.
};

// The number of trained tokens: those whose mask is not 0.
size_t count_trained(std::span<const uint8_t> mask);

// The weight w of each trained token of a sequence that has `num_tokens` of them; 0 if it has none.
// REQUIRES: batch counts this sequence.
double token_weight(const Aggregation& aggregation, size_t num_tokens, const BatchSize& batch);

}  // namespace mc::rl

#endif  // MC_RL_AGGREGATION_H_
