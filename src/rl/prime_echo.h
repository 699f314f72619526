// SPDX-License-Identifier: Apache-2.0
//
// PrimeEcho: the reward R of an episode of several turns, with most weight on its first turn.
//
//   R = alpha s_1 + (1 - alpha) max_t s_t + b_early(t*)
//
// s_t is the score of turn t, and t* the first turn that passed (s >= 1); b_early is 0 if no turn
// passed. Only the first turn is trained, so R measures how good the first turn was and how well it
// could be repaired.  The maximum is over the turns that took place: an episode ends at its first
// pass.
//
//   prime_echo({{-1.0, 1.0}}, {})  // Failed, then passed: -0.75 + 0.25 + 0.1 = -0.4
#ifndef MC_RL_PRIME_ECHO_H_
#define MC_RL_PRIME_ECHO_H_

#include <optional>
#include <span>
#include <vector>

namespace mc::rl {

struct PrimeEchoOptions {
  double alpha = 0.75;  // The weight of the first turn.
  std::vector<double> b_early{0.2, 0.1,
                              // The bonus b_early for each turn at which the first pass may occur;
                              // 0 for later turns.
                              0.0};
};

// `s`: the scores of an episode's turns in order; a turn without a score is infra or unsupported.
// The result is empty if any turn has no score, because the turns after it would have been
// different.  The sample is then left out of mean, spread and loss (advantage.h), never counted as
// failed. REQUIRES: s is not empty, its scores are finite and 0 <= alpha <= 1.
std::optional<double> prime_echo(std::span<const std::optional<double>> s,
                                 const PrimeEchoOptions& options);

}  // namespace mc::rl

#endif  // MC_RL_PRIME_ECHO_H_
