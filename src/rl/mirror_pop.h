// SPDX-License-Identifier: Apache-2.0
//
// MirrorPop: drops a sequence on which trainer and generator disagree.
// The rule:
//   log rho_t = log pi_old(t) - log pi_rollout(t)      of the same weights, by two programs
//   a sequence is kept where mean_t |log rho_t| <= delta, over its trained tokens
//
// The absolute value is the point: errors of both signs cancel in the mean that others take.
// log pi_old is the trainer's, computed once for the batch, not the policy that moves from one
// mini-batch to the next; log pi_rollout is what the generator said, of the full softmax too.
// Tokens that are not trained (prompt, padding, tool output, later turns) are never read.  A token
// whose log-probability the generator does not know (NaN) is not counted.
// Example:
//   if (keeps(drift(old, rollout, mask), {})) train(sequence);
#ifndef MC_RL_MIRROR_POP_H_
#define MC_RL_MIRROR_POP_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace mc::rl {

// The drift of one sequence.  Infinite where the generator's log-probabilities are.
struct Drift {
  size_t num_tokens = 0;   // Trained tokens.
  size_t num_known = 0;    // Trained tokens that count; with none all below is 0.
  double mean_abs = 0;     // The mean of |log rho|: MirrorPop's statistic.
  double mean_signed = 0;  // The mean of log rho, which cancels.
};

// Which mean of log rho is held against delta.
enum class DriftMean {
  kAbsolute,
  kSigned,  // Others take this one; it is an arm of experiments, not the paper's rule.
};

struct MirrorPopOptions {
  double delta = 0.05;
  DriftMean mean = DriftMean::kAbsolute;
};

// REQUIRES: the spans are of one size; old is finite where the mask is not 0.
Drift drift(std::span<const double> logp_old, std::span<const double> logp_rollout,
            std::span<const uint8_t> mask);

// False for a sequence without trained tokens, and for one of which no more than half are known.
// REQUIRES: delta >= 0.
bool keeps(const Drift& drift, const MirrorPopOptions& options);

}  // namespace mc::rl

#endif  // MC_RL_MIRROR_POP_H_
