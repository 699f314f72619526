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
#include <optional>
#include <span>
#include <vector>

namespace mc::rl {

// The drift of one sequence.  Infinite where the generator's log-probabilities are.
struct Drift {
  size_t num_tokens = 0;   // Trained tokens.
  size_t num_known = 0;    // Trained tokens that count; with none all below is 0.
  double mean_abs = 0;     // The mean of |log rho|: MirrorPop's statistic.
  double mean_signed = 0;  // The mean of log rho, which cancels.
  double log_rho_min = 0;  // The least of them.
};

// Which mean of log rho is held against delta.
enum class DriftMean {
  kAbsolute,
  kSigned,  // Others take this one; it is an arm of experiments, not the paper's rule.
};

struct MirrorPopOptions {
  double delta = 0.05;
  std::optional<double> token_veto =
      std::nullopt;  // One token of rho below this rejects: 1e-4 where it is used.
  DriftMean mean = DriftMean::kAbsolute;
};

// REQUIRES: the spans are of one size; old is finite where the mask is not 0.
Drift drift(std::span<const double> logp_old, std::span<const double> logp_rollout,
            std::span<const uint8_t> mask);

// False for a sequence without trained tokens, and for one of which no more than half are known.
// REQUIRES: delta >= 0; token_veto > 0.
bool keeps(const Drift& drift, const MirrorPopOptions& options);

// ---- delta = auto -------------------------------------------------------------------------------

inline constexpr size_t kDriftWindow = 4096;  // Sequences: 8 steps of 64 x 8.

// mean_abs of the last sequences, oldest first: all the state that `auto` has.
struct DriftWindow {
  std::vector<double> mean_abs;
};

// clamp(4 x median of the window, 0.02, 0.1); MirrorPopOptions' delta while it is empty.
// Asked once a step, before the step's own sequences are observed, so that their order and
// micro-batches cannot matter.
double delta_auto(const DriftWindow& window);

// Adds sequences, rejected ones too: the median is to know them.  Those without a known token or
// without a finite drift are left out.
void observe(DriftWindow& window, std::span<const Drift> drifts);

}  // namespace mc::rl

#endif  // MC_RL_MIRROR_POP_H_
