// SPDX-License-Identifier: Apache-2.0
//
// The loss of one update and its gradient with respect to the new policy's log-probabilities.
//
//   L = sum over trained tokens t of sequences in the loss  w_t (L_clip,t + beta k3_t)
//
// The order: advantages of each group (advantage.h), rejection of sequences (mirror_pop.h),
// losses of tokens (objective.h) under weights that count the whole batch (aggregation.h).
//
// Sequences lie one after another; padding is a token with mask 0 and may hold anything, NaN too.
// Tokens of later turns are not part of a sequence: a decoder is causal, so training the first turn
// alone is the same as cutting the rest off.
//
// `step_loss` does a whole batch.  Who splits it into micro-batches takes the parts: `plan_step`
// once, then `sequence_loss` of any sequences in any order; the losses add up to the same.
// Example:
//   const StepResult step = step_loss(batch, {});
//   if (!step.plan.skips_update()) logp_new.backward(step.loss.gradient);
#ifndef MC_RL_STEP_H_
#define MC_RL_STEP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rl/advantage.h"
#include "rl/aggregation.h"
#include "rl/mirror_pop.h"
#include "rl/objective.h"

namespace mc::rl {

struct StepOptions {
  AdvantageOptions advantage{};
  std::optional<MirrorPopOptions> mirror_pop = MirrorPopOptions{};  // Empty = off.
  ClipOptions clip{};
  double beta = 0.001;  // Weight of k3; 0 needs no reference.
  Aggregation aggregation = SequenceMean{};
};

// Arguments, not owned.  Log-probabilities are of the tokens as they were sampled.
struct Tokens {
  std::span<const uint8_t> mask{};     // Not 0 = trained.
  std::span<const double> logp_new{};  // The log-probabilities of the policy that is trained.
  // The log-probabilities of the trainer before the update; may be logp_new itself.
  std::span<const double> logp_old{};
  // The log-probabilities of the generator; may be empty without MirrorPop.
  std::span<const double> logp_rollout{};
  std::span<const double> logp_ref{};  // May be empty where beta is 0.
  // The entropy of the policy at each token, in nat; may be empty.
  std::span<const double> entropy{};
};

struct StepBatch {
  Tokens tokens{};
  // The ends: of each sequence the token after its last, of each group the sequence after its last;
  // ascending.
  std::span<const size_t> sequence_ends{};
  std::span<const size_t> group_ends{};
  // The reward of each sequence; empty = infra or unsupported.
  std::span<const std::optional<double>> rewards{};
  // The score of each sequence's first turn, for a metric; may be empty.
  std::span<const std::optional<double>> s_first{};
};

// The decisions before any gradient.
struct StepPlan {
  // The advantage of each sequence; empty = not in the loss.
  std::vector<std::optional<double>> advantage;
  std::vector<Drift> drifts;  // The drifts of each sequence; empty without MirrorPop.
  BatchSize size;             // Before any rejection.
  size_t num_in_loss = 0;     // Sequences with an advantage and a trained token.
  size_t num_unscored = 0;    // Sequences without a reward.
  size_t num_rejected = 0;    // With an advantage, by MirrorPop.
  size_t num_groups_dropped = 0;
  size_t num_groups_no_spread = 0;
  double reward_mean = 0;  // The mean of the scored sequences.
  double std_mean = 0;     // The mean of the rewards of a group, over groups that are not dropped.
  // The share with A > 0 of scored sequences whose first turn failed: division by std undoes alpha
  // where all first turns fail.  Empty where there are none or nothing is known of them.
  std::optional<double> frac_positive_adv_on_failed_first_turn;

  // No sequence is left: do not step the optimiser, which would decay weights and apply momentum.
  bool skips_update() const { return num_in_loss == 0; }
};

// Sums over trained tokens in the loss, so that the parts of a batch can be added up.
struct LossMetrics {
  size_t num_tokens = 0;
  size_t num_clipped_low = 0;
  size_t num_clipped_high = 0;
  double sum_k3 = 0;        // 0 without a reference.
  double sum_entropy = 0;   // 0 without entropies.
  double sum_neg_logp = 0;  // -log pi_new: an estimate of the entropy from the samples.

  void add(const LossMetrics& other);
  // The share of tokens for which one of the bounds cut the gradient off; 0 without tokens.
  double clip_share() const;
  double mean(double sum) const;  // The quotient sum / num_tokens; 0 without tokens.
};

struct SequenceLoss {
  double policy = 0;             // The sum of w L_clip
  double kl = 0;                 // The sum of w k3, without beta
  std::vector<double> gradient;  // dL / d log pi_new of each token; 0 where it is not trained.
  LossMetrics metrics;
};

struct StepLoss {
  double value = 0;  // The sum policy + beta kl
  double policy = 0;
  double kl = 0;
  std::vector<double> gradient;  // The gradient of each token of the batch.
  LossMetrics metrics;
};

struct StepResult {
  StepPlan plan;
  StepLoss loss;
};

// REQUIRES of all three: spans of tokens are of one size where they are not empty, the ends cover
// them all, and log-probabilities of the trainer's are finite where a trained token is in the loss.

StepPlan plan_step(const StepBatch& batch, const StepOptions& options);

// The loss of one sequence that is in the loss with advantage A.
SequenceLoss sequence_loss(const Tokens& sequence, double A, const BatchSize& size,
                           const StepOptions& options);

StepResult step_loss(const StepBatch& batch, const StepOptions& options);

}  // namespace mc::rl

#endif  // MC_RL_STEP_H_
