// SPDX-License-Identifier: Apache-2.0
//
// Which position of a packed batch predicts which token.
//
// A decoder's output at position p is the distribution of token p + 1 of the same segment.  So the
// log-probability of a response's first token comes from the last position of its own prompt, and
// the last position of a segment predicts nothing: what follows belongs to another sample.
#ifndef MC_RL_PACKING_H_
#define MC_RL_PACKING_H_

#include <cstddef>
#include <span>
#include <vector>

namespace mc::rl {

// One sample of a packed batch: its prompt, then its response.
struct Segment {
  size_t prompt_tokens = 0;  // At least 1.
  size_t response_tokens = 0;
};

// For each response token of all segments, in order, the position that predicts it; segments lie
// one after another from position 0.  Token and position differ by one: the token itself is at p
// + 1. REQUIRES: every prompt has a token.
std::vector<size_t> predicting_positions(std::span<const Segment> segments);

}  // namespace mc::rl

#endif  // MC_RL_PACKING_H_
