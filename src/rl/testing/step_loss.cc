// SPDX-License-Identifier: Apache-2.0
#include "rl/testing/step_loss.h"

#include <algorithm>
#include <cstddef>
#include <span>

namespace mc::rl {
namespace {

template <typename T>
std::span<const T> slice(std::span<const T> all, size_t begin, size_t end) {
  return all.empty() ? all : all.subspan(begin, end - begin);
}

}  // namespace

StepResult step_loss(const StepBatch& batch, const StepOptions& options) {
  StepResult result{.plan = plan_step(batch, options), .loss = {}};
  StepLoss& loss = result.loss;
  loss.gradient.resize(batch.tokens.mask.size());
  size_t begin = 0;
  for (size_t i = 0; i < batch.sequence_ends.size(); ++i) {
    const size_t end = batch.sequence_ends[i];
    const auto& advantage = result.plan.advantage[i];
    if (advantage) {
      const Tokens& all = batch.tokens;
      const Tokens tokens{.mask = slice(all.mask, begin, end),
                          .logp_new = slice(all.logp_new, begin, end),
                          .logp_old = slice(all.logp_old, begin, end),
                          .logp_rollout = slice(all.logp_rollout, begin, end),
                          .logp_ref = slice(all.logp_ref, begin, end),
                          .entropy = slice(all.entropy, begin, end)};
      const SequenceLoss one = sequence_loss(tokens, *advantage, result.plan.size, options);
      loss.policy += one.policy;
      loss.kl += one.kl;
      loss.metrics.add(one.metrics);
      std::ranges::copy(one.gradient, loss.gradient.begin() + static_cast<std::ptrdiff_t>(begin));
    }
    begin = end;
  }
  loss.value = loss.policy + options.beta * loss.kl;
  return result;
}

}  // namespace mc::rl
