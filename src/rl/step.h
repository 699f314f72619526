// SPDX-License-Identifier: Apache-2.0
//
// The loss of one update and its gradient with respect to the new policy's log-probabilities.
//
//   L = sum over trained tokens t of sequences in the loss  w_t (L_clip,t + beta k3_t)
//
// The order: advantages of each group (advantage.h), rejection of sequences (mirror_pop.h), token
// losses (objective.h) with weights that count the whole batch (aggregation.h).
//
// Sequences are concatenated.  Padding is a token with mask 0; its other values may be anything,
// also NaN.  A sequence does not contain the tokens of later turns: a decoder is causal, so
// training the first turn alone is the same as cutting off the rest.
//
// The caller calls `plan_step` once for the whole batch, then `sequence_loss` for its sequences, in
// any order and in any micro-batches; the losses add up to the loss of the batch.  Example:
//   const StepPlan plan = plan_step(batch, {});
//   if (!plan.skips_update() && plan.advantage[i]) {
//     logp_new.backward(sequence_loss(tokens_of_i, *plan.advantage[i], plan.size, {}).gradient);
//   }
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
  double beta = 0.001;  // The weight of k3; at 0, no reference is needed.
  Aggregation aggregation = SequenceMean{};
};

// Views of arrays that the caller owns.  Each log-probability belongs to the token that was
// sampled.
struct Tokens {
  std::span<const uint8_t> mask{};     // Not 0 = trained.
  std::span<const double> logp_new{};  // The log-probabilities of the policy that is trained.
  // The log-probabilities of the trainer before the update; this may be the same array as logp_new.
  std::span<const double> logp_old{};
  // The log-probabilities that the generator reported; may be empty without MirrorPop.
  std::span<const double> logp_rollout{};
  std::span<const double> logp_ref{};  // May be empty where beta is 0.
  // The entropy of the policy at each token, in nat; may be empty.
  std::span<const double> entropy{};
};

struct StepBatch {
  Tokens tokens{};
  // For each sequence, the index after its last token, and for each group, the index after its last
  // sequence; ascending.
  std::span<const size_t> sequence_ends{};
  std::span<const size_t> group_ends{};
  // The reward of each sequence; empty = infra or unsupported.
  std::span<const std::optional<double>> rewards{};
  // The score of each sequence's first turn, needed for one metric only; may be empty.
  std::span<const std::optional<double>> s_first{};
};

// The decisions that are made before any gradient is computed.
struct StepPlan {
  // The advantage of each sequence; empty = not in the loss.
  std::vector<std::optional<double>> advantage;
  std::vector<Drift> drifts;  // The drifts of each sequence; empty without MirrorPop.
  BatchSize size;             // The whole batch, before any rejection.
  size_t num_in_loss = 0;     // Sequences with an advantage and a trained token.
  size_t num_unscored = 0;    // Sequences without a reward.
  size_t num_rejected = 0;    // Sequences that have an advantage but were rejected by MirrorPop.
  size_t num_groups_dropped = 0;
  size_t num_groups_no_spread = 0;
  double reward_mean = 0;  // The mean reward of the sequences that have a reward.
  // The mean spread (std) of the rewards of a group, over groups that are not dropped.
  double std_mean = 0;
  // Among scored sequences whose first turn failed, the share with A > 0.  It is high where all
  // first turns of a group fail, because division by std then cancels alpha.  Empty if there is no
  // such sequence or StepBatch::s_first is empty.
  std::optional<double> frac_positive_adv_on_failed_first_turn;

  // True if no sequence is left: the optimizer must not step, because it would still apply weight
  // decay and momentum.
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
  // The share of tokens whose gradient was clipped; 0 without tokens.
  double clip_share() const;
  double mean(double sum) const;  // The quotient sum / num_tokens; 0 without tokens.
};

struct SequenceLoss {
  double policy = 0;             // The sum of w L_clip
  double kl = 0;                 // The sum of w k3, without beta
  std::vector<double> gradient;  // dL / d log pi_new of each token; 0 where it is not trained.
  LossMetrics metrics;
};

// REQUIRES of both functions: non-empty spans of tokens have the same size, the ends cover all
// tokens and sequences, and logp_old is finite at each trained token in the loss.

StepPlan plan_step(const StepBatch& batch, const StepOptions& options);

// The loss of one sequence that is in the loss with advantage A.
SequenceLoss sequence_loss(const Tokens& sequence, double A, const BatchSize& size,
                           const StepOptions& options);

}  // namespace mc::rl

#endif  // MC_RL_STEP_H_
