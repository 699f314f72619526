// SPDX-License-Identifier: Apache-2.0
#include "loop/update.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

#include "core/check.h"

namespace mc::loop {
namespace {

// The episodes in the form that src/rl takes: trained tokens only, sequences concatenated.
struct Sequences {
  std::vector<train::Sample> samples;  // The prompts with the first answers.
  std::vector<uint8_t> mask;
  std::vector<double> rollout;
  std::vector<double> old;
  std::vector<double> reference;
  std::vector<size_t> ends;
  std::vector<size_t> group_ends;
  std::vector<std::optional<double>> rewards;
  std::vector<std::optional<double>> s_first;

  size_t begin_of(size_t i) const { return i == 0 ? 0 : ends[i - 1]; }
  std::span<const double> part(const std::vector<double>& all, size_t i) const {
    if (all.empty()) return {};
    return std::span(all).subspan(begin_of(i), ends[i] - begin_of(i));
  }
};

// The rewards of a group's episodes; an episode that ends with an unsupported answer has the
// lowest.
std::vector<std::optional<double>> rewards_of(std::span<const Episode> group,
                                              const UpdateOptions& options) {
  std::vector<std::optional<double>> rewards;
  std::vector<size_t> unsupported;
  for (const Episode& episode : group) {
    if (episode.turns.back().judgement.outcome == "unsupported") {
      unsupported.push_back(rewards.size());
    }
    rewards.push_back(reward_of(episode, options));
  }
  rl::give_minimum(rewards, unsupported);
  return rewards;
}

Sequences sequences_of(std::span<const Episode> episodes, const UpdateOptions& options) {
  Sequences all;
  for (const Episode& episode : episodes) {
    MC_CHECK(!episode.turns.empty() && episode.tokens.size() == episode.log_probs.size());
    train::Sample sample{episode.prompt, static_cast<int64_t>(episode.prompt.size())};
    sample.tokens.insert(sample.tokens.end(), episode.tokens.begin(), episode.tokens.end());
    all.samples.push_back(std::move(sample));
    all.rollout.insert(all.rollout.end(), episode.log_probs.begin(), episode.log_probs.end());
    all.ends.push_back(all.rollout.size());
    all.s_first.push_back(episode.turns.front().judgement.s);
  }
  std::mt19937_64 order(options.shuffle_seed.value_or(0));
  for (const std::span<const Episode> group : groups_of(episodes)) {
    auto rewards = rewards_of(group, options);
    if (options.shuffle_seed) std::ranges::shuffle(rewards, order);
    all.rewards.insert(all.rewards.end(), rewards.begin(), rewards.end());
    all.group_ends.push_back(all.rewards.size());
  }
  all.mask.assign(all.rollout.size(), 1);
  return all;
}

std::vector<double> log_probs_of(const std::vector<Scores>& scores) {
  std::vector<double> all;
  for (const Scores& one : scores) {
    all.insert(all.end(), one.log_probs.begin(), one.log_probs.end());
  }
  return all;
}

rl::StepPlan plan_of(const Sequences& all, const rl::StepOptions& options) {
  const rl::StepBatch batch{.tokens = {.mask = all.mask,
                                       .logp_new = all.old,
                                       .logp_old = all.old,
                                       .logp_rollout = all.rollout,
                                       .logp_ref = all.reference},
                            .sequence_ends = all.ends,
                            .group_ends = all.group_ends,
                            .rewards = all.rewards,
                            .s_first = all.s_first};
  return rl::plan_step(batch, options);
}

// One part of a pass: the sequences of some whole groups.
struct MiniBatch {
  std::vector<size_t> numbers;  // The indices of the sequences that are in the loss.
  rl::BatchSize size;           // All sequences of the part, in the form for token_weight.
};

// Groups are distributed round-robin, so that all parts have similar numbers of replays and long
// prompts.
std::vector<MiniBatch> mini_batches_of(const Sequences& all, const rl::StepPlan& plan,
                                       int64_t count) {
  MC_CHECK(count > 0 && plan.advantage.size() == all.ends.size());
  std::vector<MiniBatch> parts(static_cast<size_t>(count));
  size_t i = 0;
  for (size_t group = 0; group < all.group_ends.size(); ++group) {
    MiniBatch& part = parts[group % parts.size()];
    for (; i < all.group_ends[group]; ++i) {
      part.size.num_sequences += 1;
      part.size.num_tokens += all.ends[i] - all.begin_of(i);
      if (plan.advantage[i]) part.numbers.push_back(i);
    }
  }
  MC_CHECK(i == plan.advantage.size());  // The groups cover all sequences.
  std::erase_if(parts, [](const MiniBatch& part) { return part.numbers.empty(); });
  return parts;
}

// The mean over tokens of k3 from the current policy to the old one.
double kl_of_old(std::span<const double> old, std::span<const double> now) {
  MC_CHECK(old.size() == now.size());
  double sum = 0;
  for (size_t t = 0; t < old.size(); ++t) {
    sum += rl::kl_estimate(old[t] - now[t]).value;
  }
  return old.empty() ? 0 : sum / static_cast<double>(old.size());
}

// Performs one optimizer step on the sequences of a part that are in the loss.
Status update_once(Policy& policy, const Sequences& all, const MiniBatch& part,
                   const UpdateOptions& options, UpdateResult& result) {
  const std::vector<size_t>& numbers = part.numbers;
  std::vector<train::Sample> samples;
  for (const size_t i : numbers) samples.push_back(all.samples[i]);
  std::vector<double> kls(numbers.size());
  std::vector<rl::SequenceLoss> losses(numbers.size());
  result.grad_norm = policy.update(
      samples,
      [&](size_t n, const Scores& now) {
        const size_t i = numbers[n];
        const std::vector<uint8_t> mask(now.log_probs.size(), 1);
        kls[n] = kl_of_old(all.part(all.old, i), now.log_probs);
        losses[n] = rl::sequence_loss({.mask = mask,
                                       .logp_new = now.log_probs,
                                       .logp_old = all.part(all.old, i),
                                       .logp_rollout = all.part(all.rollout, i),
                                       .logp_ref = all.part(all.reference, i),
                                       .entropy = now.entropy},
                                      *result.plan.advantage[i], part.size, options.step);
        return losses[n].gradient;
      },
      options.lr);
  result.policy_loss = 0;
  double kl = 0;
  result.metrics = {};
  for (const rl::SequenceLoss& loss : losses) {
    result.policy_loss += loss.policy;
    kl += loss.kl;
    result.metrics.add(loss.metrics);
  }
  MC_CHECK(result.metrics.num_tokens > 0);  // A sequence in the loss has a trained token.
  result.loss = result.policy_loss + options.step.beta * kl;
  result.kl_old = std::accumulate(kls.begin(), kls.end(), 0.0) / static_cast<double>(kls.size());
  result.num_updates += 1;
  if (std::isfinite(result.grad_norm)) return ok();
  return invalid("the gradient is no longer a finite number; a smaller --lr may help");
}

bool has_no_spread(std::span<const Episode> group, const UpdateOptions& options) {
  // Giving the lowest reward to more samples adds no spread.
  std::vector<std::optional<double>> rewards;
  for (const Episode& episode : group) rewards.push_back(reward_of(episode, options));
  const auto status = rl::group_advantage(rewards, options.step.advantage).status;
  return status == rl::GroupStatus::kNoSpread;
}

}  // namespace

std::optional<double> reward_of(const Episode& episode, const UpdateOptions& options) {
  std::optional<double> reward = rl::prime_echo(episode.scores(), options.prime_echo);
  if (reward) *reward += rl::overlong_penalty(episode.turns.front().num_tokens, options.overlong);
  return reward;
}

std::vector<Episode> with_spread(std::span<const Episode> episodes, const UpdateOptions& options) {
  std::vector<Episode> kept;
  for (const std::span<const Episode> group : groups_of(episodes)) {
    if (!has_no_spread(group, options)) kept.insert(kept.end(), group.begin(), group.end());
  }
  return kept;
}

size_t num_without_spread(std::span<const Episode> episodes, const UpdateOptions& options) {
  return static_cast<size_t>(std::ranges::count_if(
      groups_of(episodes), [&](const auto& group) { return has_no_spread(group, options); }));
}

Result<UpdateResult> update_policy(Policy& policy, std::span<const Episode> episodes,
                                   const UpdateOptions& options) {
  Sequences all = sequences_of(episodes, options);
  all.old = log_probs_of(policy.score(all.samples));
  if (options.step.beta > 0) all.reference = log_probs_of(policy.score_by_reference(all.samples));
  MC_CHECK(all.old.size() == all.rollout.size());
  UpdateResult result;
  result.plan = plan_of(all, options.step);
  for (size_t i = 0; i < all.samples.size(); ++i) {
    const std::vector<uint8_t> mask(all.ends[i] - all.begin_of(i), 1);
    result.drifts.push_back(rl::drift(all.part(all.old, i), all.part(all.rollout, i), mask));
  }
  if (result.plan.skips_update()) return result;
  const auto parts = mini_batches_of(all, result.plan, options.mini_batches);
  for (int64_t k = 0; k < options.updates; ++k) {
    for (const MiniBatch& part : parts) {
      MC_TRY_VOID(update_once(policy, all, part, options, result), "update");
      if (options.kl_stop && result.kl_old > *options.kl_stop) return result;
    }
  }
  return result;
}

}  // namespace mc::loop
