// SPDX-License-Identifier: Apache-2.0
#include "rl/step.h"

#include <cstddef>
#include <optional>
#include <span>

#include "core/check.h"
#include "rl/advantage.h"
#include "rl/aggregation.h"
#include "rl/mirror_pop.h"
#include "rl/objective.h"
#include "rl/score.h"

namespace mc::rl {
namespace {

struct Range {
  size_t begin;
  size_t size;
};

Range range_of(std::span<const size_t> ends, size_t index) {
  const size_t begin = index == 0 ? 0 : ends[index - 1];
  return {begin, ends[index] - begin};
}

// The part of a span; empty if the whole span is (an optional input that was left out).
template <typename T>
std::span<const T> part(std::span<const T> all, const Range& range) {
  return all.empty() ? all : all.subspan(range.begin, range.size);
}

Tokens part(const Tokens& all, const Range& range) {
  return {.mask = part(all.mask, range),
          .logp_new = part(all.logp_new, range),
          .logp_old = part(all.logp_old, range),
          .logp_rollout = part(all.logp_rollout, range),
          .logp_ref = part(all.logp_ref, range),
          .entropy = part(all.entropy, range)};
}

bool covers(std::span<const size_t> ends, size_t size) {
  return std::is_sorted(ends.begin(), ends.end()) && (ends.empty() ? 0 : ends.back()) == size;
}

void check(const StepBatch& batch, const StepOptions& options) {
  const Tokens& tokens = batch.tokens;
  const size_t size = tokens.mask.size();
  const auto fits = [size](std::span<const double> span) {
    return span.empty() || span.size() == size;
  };
  MC_CHECK(tokens.logp_new.size() == size && tokens.logp_old.size() == size);
  MC_CHECK(fits(tokens.logp_rollout) && fits(tokens.logp_ref) && fits(tokens.entropy));
  MC_CHECK(!options.mirror_pop || tokens.logp_rollout.size() == size);
  MC_CHECK(options.beta >= 0 && (options.beta == 0 || tokens.logp_ref.size() == size));
  MC_CHECK(covers(batch.sequence_ends, size));
  MC_CHECK(covers(batch.group_ends, batch.sequence_ends.size()));
  MC_CHECK(batch.rewards.size() == batch.sequence_ends.size());
  MC_CHECK(batch.s_first.empty() || batch.s_first.size() == batch.rewards.size());
}

void count_group(const GroupAdvantage& group, StepPlan& plan) {
  plan.num_unscored += group.advantage.size() - group.num_scored;
  plan.num_groups_dropped += group.status == GroupStatus::kDropped ? 1 : 0;
  plan.num_groups_no_spread += group.status == GroupStatus::kNoSpread ? 1 : 0;
  plan.reward_mean += group.mean * static_cast<double>(group.num_scored);
  if (group.status != GroupStatus::kDropped) plan.std_mean += group.std;
}

void take_advantages(const StepBatch& batch, const AdvantageOptions& options, StepPlan& plan) {
  const size_t num_groups = batch.group_ends.size();
  for (size_t g = 0; g < num_groups; ++g) {
    const GroupAdvantage group =
        group_advantage(part(batch.rewards, range_of(batch.group_ends, g)), options);
    count_group(group, plan);
    plan.advantage.insert(plan.advantage.end(), group.advantage.begin(), group.advantage.end());
  }
  const size_t num_scored = batch.rewards.size() - plan.num_unscored;
  const size_t num_kept = num_groups - plan.num_groups_dropped;
  if (num_scored > 0) plan.reward_mean /= static_cast<double>(num_scored);
  if (num_kept > 0) plan.std_mean /= static_cast<double>(num_kept);
}

std::optional<double> positive_on_failed(std::span<const std::optional<double>> s_first,
                                         std::span<const std::optional<double>> advantage) {
  double num_failed = 0;
  double num_positive = 0;
  for (size_t i = 0; i < s_first.size(); ++i) {
    if (!s_first[i] || !advantage[i] || *s_first[i] >= kScorePassed) continue;
    ++num_failed;
    if (*advantage[i] > 0) ++num_positive;
  }
  if (num_failed == 0) return std::nullopt;
  return num_positive / num_failed;
}

void reject(const StepBatch& batch, const MirrorPopOptions& options, StepPlan& plan) {
  for (size_t i = 0; i < batch.sequence_ends.size(); ++i) {
    const Tokens sequence = part(batch.tokens, range_of(batch.sequence_ends, i));
    plan.drifts.push_back(drift(sequence.logp_old, sequence.logp_rollout, sequence.mask));
    if (!plan.advantage[i] || keeps(plan.drifts.back(), options)) continue;
    plan.advantage[i].reset();
    ++plan.num_rejected;
  }
}

void count_tokens(const StepBatch& batch, StepPlan& plan) {
  plan.size = {batch.sequence_ends.size(), count_trained(batch.tokens.mask)};
  for (size_t i = 0; i < batch.sequence_ends.size(); ++i) {
    const auto mask = part(batch.tokens.mask, range_of(batch.sequence_ends, i));
    if (plan.advantage[i] && count_trained(mask) > 0) ++plan.num_in_loss;
  }
}

void count_clip(Clipped clipped, LossMetrics& metrics) {
  metrics.num_clipped_low += clipped == Clipped::kLow ? 1 : 0;
  metrics.num_clipped_high += clipped == Clipped::kHigh ? 1 : 0;
}

}  // namespace

void LossMetrics::add(const LossMetrics& other) {
  num_tokens += other.num_tokens;
  num_clipped_low += other.num_clipped_low;
  num_clipped_high += other.num_clipped_high;
  sum_k3 += other.sum_k3;
  sum_entropy += other.sum_entropy;
  sum_neg_logp += other.sum_neg_logp;
}

double LossMetrics::clip_share() const {
  return mean(static_cast<double>(num_clipped_low + num_clipped_high));
}

double LossMetrics::mean(double sum) const {
  return num_tokens == 0 ? 0 : sum / static_cast<double>(num_tokens);
}

StepPlan plan_step(const StepBatch& batch, const StepOptions& options) {
  check(batch, options);
  StepPlan plan;
  take_advantages(batch, options.advantage, plan);
  plan.frac_positive_adv_on_failed_first_turn = positive_on_failed(batch.s_first, plan.advantage);
  if (options.mirror_pop) reject(batch, *options.mirror_pop, plan);
  count_tokens(batch, plan);
  return plan;
}

SequenceLoss sequence_loss(const Tokens& sequence, double A, const BatchSize& size,
                           const StepOptions& options) {
  SequenceLoss loss;
  loss.gradient.resize(sequence.mask.size());
  loss.metrics.num_tokens = count_trained(sequence.mask);
  const double w = token_weight(options.aggregation, loss.metrics.num_tokens, size);
  for (size_t t = 0; t < sequence.mask.size(); ++t) {
    if (sequence.mask[t] == 0) continue;
    const double logp_new = sequence.logp_new[t];
    const TokenLoss clip = clipped_loss(logp_new - sequence.logp_old[t], A, options.clip);
    KlEstimate k3;
    if (!sequence.logp_ref.empty()) {
      k3 = kl_estimate(sequence.logp_ref[t] - logp_new);
    }
    loss.policy += w * clip.value;
    loss.kl += w * k3.value;
    loss.gradient[t] = w * (clip.gradient + options.beta * k3.gradient);
    count_clip(clip.clipped, loss.metrics);
    loss.metrics.sum_k3 += k3.value;
    loss.metrics.sum_entropy += sequence.entropy.empty() ? 0 : sequence.entropy[t];
    loss.metrics.sum_neg_logp -= logp_new;
  }
  return loss;
}

}  // namespace mc::rl
