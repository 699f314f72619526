// SPDX-License-Identifier: Apache-2.0
//
// MirrorPop: drops a sequence on whose log-probabilities trainer and generator disagree.
// The rule:
//   log rho_t = log pi_old(t) - log pi_rollout(t)      same weights, computed by two programs
//   a sequence is kept if mean_t |log rho_t| <= delta, over its trained tokens
//
// The absolute value matters: in a signed mean, which other methods use, errors of both signs
// cancel.  log pi_old is computed by the trainer once for the batch; it is not the policy that
// changes from one mini-batch to the next.  log pi_rollout is reported by the generator, also under
// the full softmax. Tokens that are not trained (prompt, padding, tool output, later turns) are
// never read.  A token whose log-probability the generator does not know (NaN) is not counted.
// Example:
//   if (keeps(drift(old, rollout, mask), {})) train(sequence);
#ifndef MC_RL_MIRROR_POP_H_
#define MC_RL_MIRROR_POP_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace mc::rl {

// The drift of one sequence.  It is infinite if a log-probability of the generator is.
struct Drift {
  size_t num_tokens = 0;   // Trained tokens.
  size_t num_known = 0;    // Trained tokens whose log rho is known; at 0, all members below are 0.
  double mean_abs = 0;     // The mean of |log rho|: MirrorPop's statistic.
  double mean_signed = 0;  // The mean of log rho, in which errors of both signs cancel.
};

// The mean of log rho that is compared with delta.
enum class DriftMean {
  kAbsolute,
  // The mean of other methods, for comparisons in experiments; the paper's rule is kAbsolute.
  kSigned,
};

struct MirrorPopOptions {
  double delta = 0.05;
  DriftMean mean = DriftMean::kAbsolute;
};

// REQUIRES: the spans have the same size; `old` is finite where the mask is not 0.
Drift drift(std::span<const double> logp_old, std::span<const double> logp_rollout,
            std::span<const uint8_t> mask);

// True if the sequence is trained.  False if it has no trained tokens, or if the generator knows
// the log-probabilities of at most half of them. REQUIRES: delta >= 0.
bool keeps(const Drift& drift, const MirrorPopOptions& options);

}  // namespace mc::rl

#endif  // MC_RL_MIRROR_POP_H_
