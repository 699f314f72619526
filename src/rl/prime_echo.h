// SPDX-License-Identifier: Apache-2.0
//
// PrimeEcho: the reward R of an episode of several turns, anchored to its first turn.
//
//   R = alpha s_1 + (1 - alpha) max_t s_t + b_early(t*)
//
// s_t is the score of turn t, t* the first turn that passed (s >= 1); b_early is 0 where none did.
// Only the first turn is trained, so R asks: how good was it, and how well could it be repaired?
// The maximum is over turns that happened: an episode ends at its first pass.
//
//   prime_echo({{-1.0, 1.0}}, {})  // Failed, then passed: -0.75 + 0.25 + 0.1 = -0.4
#ifndef MC_RL_PRIME_ECHO_H_
#define MC_RL_PRIME_ECHO_H_

#include <optional>
#include <span>
#include <vector>

namespace mc::rl {

struct PrimeEchoOptions {
  double alpha = 0.75;  // Weight of the first turn.
  std::vector<double> b_early{0.2, 0.1,
                              0.0};  // The index is the turn of the first pass; 0 for later turns.
};

// `s`: the scores of an episode's turns in order; empty ones are infra or unsupported.  No value
// where any turn has no score: what came after it would have been another episode, so the sample is
// left out of mean, spread and loss (advantage.h), never counted as failed.
// REQUIRES: s is not empty, its scores are finite and 0 <= alpha <= 1.
std::optional<double> prime_echo(std::span<const std::optional<double>> s,
                                 const PrimeEchoOptions& options);

}  // namespace mc::rl

#endif  // MC_RL_PRIME_ECHO_H_
