// SPDX-License-Identifier: Apache-2.0
#include "rl/step.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "rl/testing/step_loss.h"

namespace mc::rl {
namespace {

using Rewards = std::vector<std::optional<double>>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// One sequence; a batch is packed from any number of them.
struct Sequence {
  std::optional<double> reward{};
  std::optional<double> s_first{};
  std::vector<uint8_t> mask{};
  std::vector<double> logp_new{};
  std::vector<double> logp_old{};
  std::vector<double> logp_rollout{};
  std::vector<double> logp_ref{};
  std::vector<double> entropy{};

  void add(uint8_t trained, double now, double old, double rollout, double ref) {
    mask.push_back(trained);
    logp_new.push_back(now);
    logp_old.push_back(old);
    logp_rollout.push_back(rollout);
    logp_ref.push_back(ref);
    entropy.push_back(trained == 0 ? kNan : 0.5);
  }
  void pad() { add(0, kNan, kNan, kNan, kNan); }
};
using Group = std::vector<Sequence>;

struct Packed {
  explicit Packed(const std::vector<Group>& groups) {
    for (const Group& group : groups) {
      for (const Sequence& sequence : group) append(sequence);
      group_ends.push_back(rewards.size());
    }
  }

  void append(const Sequence& one) {
    const auto join = [](auto& to, const auto& more) {
      to.insert(to.end(), more.begin(), more.end());
    };
    join(all.mask, one.mask);
    join(all.logp_new, one.logp_new);
    join(all.logp_old, one.logp_old);
    join(all.logp_rollout, one.logp_rollout);
    join(all.logp_ref, one.logp_ref);
    join(all.entropy, one.entropy);
    sequence_ends.push_back(all.mask.size());
    rewards.push_back(one.reward);
    s_first.push_back(one.s_first);
  }

  StepBatch view() const {
    return {.tokens = {.mask = all.mask,
                       .logp_new = all.logp_new,
                       .logp_old = all.logp_old,
                       .logp_rollout = all.logp_rollout,
                       .logp_ref = all.logp_ref,
                       .entropy = all.entropy},
            .sequence_ends = sequence_ends,
            .group_ends = group_ends,
            .rewards = rewards,
            .s_first = s_first};
  }

  Sequence all;
  std::vector<size_t> sequence_ends;
  std::vector<size_t> group_ends;
  Rewards rewards;
  Rewards s_first;
};

StepResult step(const std::vector<Group>& groups, const StepOptions& options = {}) {
  return step_loss(Packed(groups).view(), options);
}

// Four tokens with an unchanged policy and a generator that agrees.
Sequence calm(double reward) {
  Sequence sequence{.reward = reward, .s_first = reward};
  for (int t = 0; t < 4; ++t) sequence.add(1, -1, -1, -1, -1);
  return sequence;
}

// The same sequence with a generator that disagrees, with alternating signs.
Sequence drifted(double reward) {
  Sequence sequence = calm(reward);
  for (size_t t = 0; t < 4; ++t) sequence.logp_rollout[t] += t % 2 == 0 ? 0.5 : -0.5;
  return sequence;
}

std::vector<Group> random_groups(std::mt19937& random) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> score(-1, 1.5);
  std::vector<Group> groups(1 + random() % 4);
  for (Group& group : groups) {
    group.resize(2 + random() % 4);
    for (Sequence& sequence : group) {
      if (random() % 6 != 0) sequence.reward = score(random);
      const double noise = random() % 4 == 0 ? 0.2 : 0.02;
      for (size_t t = random() % 9; t > 0; --t) {
        const double old = -std::abs(normal(random));
        const double drift = noise * normal(random);
        sequence.add(random() % 4 != 0, old + 0.3 * normal(random), old, old + drift,
                     old + 0.4 * normal(random));
      }
    }
  }
  return groups;
}

// ---- Against a direct implementation ------------------------------------------------------------

// The loss of a whole batch, written as the formula of step.h.
double direct_loss(const std::vector<Group>& groups, double beta) {
  double num_sequences = 0;
  double loss = 0;
  for (const Group& group : groups) {
    num_sequences += static_cast<double>(group.size());
    std::vector<double> R;
    for (const Sequence& one : group) {
      if (one.reward) R.push_back(*one.reward);
    }
    const auto n = static_cast<double>(R.size());
    if (n < 2 || n < static_cast<double>(group.size()) / 2) continue;
    double mean = 0;
    for (const double r : R) mean += r / n;
    double variance = 0;
    for (const double r : R) variance += (r - mean) * (r - mean) / (n - 1);
    for (const Sequence& one : group) {
      if (!one.reward) continue;
      const double A = (*one.reward - mean) / (std::sqrt(variance) + 1e-6);
      double num_tokens = 0;
      double drift = 0;
      double sum = 0;
      for (size_t t = 0; t < one.mask.size(); ++t) {
        if (one.mask[t] == 0) continue;
        ++num_tokens;
        drift += std::abs(one.logp_old[t] - one.logp_rollout[t]);
        const double r = std::exp(one.logp_new[t] - one.logp_old[t]);
        const double u = std::exp(one.logp_ref[t] - one.logp_new[t]);
        sum += -std::min(r * A, std::clamp(r, 0.8, 1.28) * A) + beta * (u - 1 - std::log(u));
      }
      if (num_tokens > 0 && drift / num_tokens <= 0.05) loss += sum / num_tokens;
    }
  }
  return loss / num_sequences;
}

TEST(Step, EqualsASlowImplementationAndItsNumericGradient) {
  constexpr unsigned kSeed = 12;
  constexpr double kStep = 1e-6;
  std::mt19937 random(kSeed);
  size_t num_in_loss = 0;
  for (int i = 0; i < 40; ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", case " << i);
    std::vector<Group> groups = random_groups(random);
    const StepResult result = step(groups, {.beta = 0.02});
    num_in_loss += result.plan.num_in_loss;
    EXPECT_NEAR(result.loss.value, direct_loss(groups, 0.02), 1e-12);
    size_t token = 0;
    for (Group& group : groups) {
      for (Sequence& one : group) {
        for (double& logp : one.logp_new) {
          const double was = logp;
          logp = was + kStep;
          const double up = direct_loss(groups, 0.02);
          logp = was - kStep;
          const double slope = (up - direct_loss(groups, 0.02)) / (2 * kStep);
          logp = was;
          EXPECT_NEAR(result.loss.gradient[token], slope, 1e-6) << "token " << token;
          ++token;
        }
      }
    }
  }
  EXPECT_GT(num_in_loss, 40U);
}

// ---- Invariance ---------------------------------------------------------------------------------

TEST(Step, LossIsTheSumOverMicroBatches) {
  std::mt19937 random(13);
  for (const Aggregation& aggregation :
       {Aggregation{SequenceMean{}}, Aggregation{TokenMean{}}, Aggregation{DrGrpo{100}}}) {
    const Packed packed(random_groups(random));
    const StepOptions options{.beta = 0.1, .aggregation = aggregation};
    const StepResult whole = step_loss(packed.view(), options);
    const StepPlan plan = plan_step(packed.view(), options);
    double sum = 0;
    // Sequences in reverse order: any order is allowed.
    for (size_t i = packed.rewards.size(); i-- > 0;) {
      if (!plan.advantage[i]) continue;
      Packed alone((std::vector<Group>()));
      const size_t begin = i == 0 ? 0 : packed.sequence_ends[i - 1];
      Sequence one;
      for (size_t t = begin; t < packed.sequence_ends[i]; ++t) {
        one.add(packed.all.mask[t], packed.all.logp_new[t], packed.all.logp_old[t],
                packed.all.logp_rollout[t], packed.all.logp_ref[t]);
      }
      alone.append(one);
      const SequenceLoss loss =
          sequence_loss(alone.view().tokens, *plan.advantage[i], plan.size, options);
      sum += loss.policy + options.beta * loss.kl;
      for (size_t t = 0; t < loss.gradient.size(); ++t) {
        EXPECT_EQ(loss.gradient[t], whole.loss.gradient[begin + t]);
      }
    }
    EXPECT_NEAR(sum, whole.loss.value, 1e-12);
  }
}

TEST(Step, DoesNotDependOnTheOrderOfPacking) {
  std::mt19937 random(14);
  std::vector<Group> groups = random_groups(random);
  const StepResult forward = step(groups);
  std::reverse(groups.begin(), groups.end());
  for (Group& group : groups) std::reverse(group.begin(), group.end());
  const StepResult backward = step(groups);
  EXPECT_NEAR(forward.loss.value, backward.loss.value, 1e-12);
  EXPECT_EQ(forward.plan.num_rejected, backward.plan.num_rejected);
}

TEST(Step, NeverReadsPadding) {
  std::mt19937 random(15);
  std::vector<Group> groups = random_groups(random);
  const StepResult plain = step(groups);
  for (Group& group : groups) {
    for (Sequence& one : group) one.pad();
  }
  const StepResult padded = step(groups);
  EXPECT_EQ(padded.loss.value, plain.loss.value);
  for (const double g : padded.loss.gradient) EXPECT_TRUE(std::isfinite(g));
}

TEST(Step, ALaterTurnDoesNotChangeTheLoss) {
  std::mt19937 random(16);
  const std::vector<Group> first = random_groups(random);
  std::vector<Group> both = first;
  for (Group& group : both) {
    for (Sequence& one : group) {
      for (int t = 0; t < 3; ++t) one.add(0, -0.1, -7, 0, -3);  // Feedback and a second answer.
    }
  }
  EXPECT_EQ(step(both).loss.value, step(first).loss.value);
  EXPECT_EQ(step(both).plan.num_in_loss, step(first).plan.num_in_loss);
}

// ---- Edge cases ---------------------------------------------------------------------------------

TEST(Step, SkipsTheUpdateIfAllSequencesAreRejected) {
  const StepResult result = step({{drifted(1), drifted(-1)}});
  EXPECT_TRUE(result.plan.skips_update());
  EXPECT_EQ(result.plan.num_rejected, 2U);
  EXPECT_EQ(result.loss.value, 0);
  for (const double g : result.loss.gradient) EXPECT_EQ(g, 0);
}

TEST(Step, SkipsTheUpdateWithoutTrainedTokens) {
  Sequence empty = calm(1);
  empty.mask.assign(4, 0);
  const StepOptions options{.mirror_pop = std::nullopt};
  EXPECT_TRUE(step({{empty, empty}}, options).plan.skips_update());
}

TEST(Step, ARejectionDoesNotChangeTheOtherWeights) {
  const StepResult all = step({{calm(1), calm(-1), calm(0.2)}});
  const StepResult less = step({{calm(1), drifted(-1), calm(0.2)}});
  for (size_t t = 0; t < 12; ++t) {
    const bool is_rejected = t >= 4 && t < 8;
    EXPECT_EQ(less.loss.gradient[t], is_rejected ? 0 : all.loss.gradient[t]) << t;
  }
}

TEST(Step, ComputesTheBaselineBeforeRejection) {
  const StepResult result = step({{calm(1), drifted(-1)}});
  EXPECT_NEAR(*result.plan.advantage[0], std::sqrt(0.5), 1e-5);
  EXPECT_FALSE(result.plan.advantage[1].has_value());
}

TEST(Step, WithoutSpreadTheLossIsTheKlTerm) {
  Sequence one = calm(0.1);
  one.logp_ref.assign(4, -1.5);
  const StepResult result = step({{one, one}}, {.beta = 0.5});
  EXPECT_EQ(result.plan.num_groups_no_spread, 1U);
  EXPECT_EQ(result.loss.policy, 0);
  EXPECT_NEAR(result.loss.value, 0.5 * (std::exp(-0.5) - 1 + 0.5), 1e-12);
}

TEST(Step, NeedsNoReferenceAtBetaZeroAndNoRolloutWithoutMirrorPop) {
  Packed packed({{calm(1), calm(-1)}});
  StepBatch batch = packed.view();
  batch.tokens.logp_ref = {};
  batch.tokens.logp_rollout = {};
  batch.tokens.entropy = {};
  batch.s_first = {};
  const StepResult result = step_loss(batch, {.mirror_pop = std::nullopt, .beta = 0});
  EXPECT_EQ(result.plan.num_in_loss, 2U);
  EXPECT_TRUE(result.plan.drifts.empty());
  EXPECT_EQ(result.plan.frac_positive_adv_on_failed_first_turn, std::nullopt);
}

TEST(Step, AnEmptyBatchHasNoLoss) {
  const StepResult result = step({});
  EXPECT_TRUE(result.plan.skips_update());
  EXPECT_EQ(result.loss.value, 0);
}

TEST(StepDeathTest, RejectsAMissingReferenceAndIncompleteEnds) {
  const Packed packed({{calm(1), calm(-1)}});
  StepBatch batch = packed.view();
  batch.tokens.logp_ref = {};
  EXPECT_DEATH(step_loss(batch, {}), "beta");
  batch = packed.view();
  batch.sequence_ends = batch.sequence_ends.first(1);
  EXPECT_DEATH(step_loss(batch, {}), "covers");
}

// ---- Metrics ------------------------------------------------------------------------------------

TEST(StepMetrics, CountTheDecisionForEachSequence) {
  Sequence infra = drifted(0);  // The sequence is not scored, so it is not rejected either.
  infra.reward.reset();
  // All are kept; one sample has no reward.
  const StepPlan plan = step({{calm(1), calm(-1), infra},
                              {calm(0.2), calm(0.2)},   // No spread.
                              {calm(1), infra, infra},  // Dropped.
                              {drifted(1), calm(-1)}})
                            .plan;
  EXPECT_EQ(plan.num_unscored, 3U);
  EXPECT_EQ(plan.num_rejected, 1U);
  EXPECT_EQ(plan.num_groups_dropped, 1U);
  EXPECT_EQ(plan.num_groups_no_spread, 1U);
  EXPECT_EQ(plan.num_in_loss, 5U);
  EXPECT_EQ(plan.size.num_sequences, 10U);
  EXPECT_EQ(plan.size.num_tokens, 40U);
  EXPECT_NEAR(plan.reward_mean, (1 - 1 + 0.4 + 1 + 1 - 1) / 7, 1e-12);
  EXPECT_NEAR(plan.std_mean, 2 * std::sqrt(2) / 3, 1e-12);
}

TEST(StepMetrics, ReportTheShareOfRewardedFailedFirstTurns) {
  Sequence repaired = calm(-0.4);
  repaired.s_first = -1;
  const Group group{repaired, calm(-1), calm(-1), calm(-1)};
  EXPECT_EQ(step({group}).plan.frac_positive_adv_on_failed_first_turn, 0.25);
  EXPECT_EQ(step({{calm(1), calm(1.2)}}).plan.frac_positive_adv_on_failed_first_turn, std::nullopt);
}

TEST(StepMetrics, ReportTheShareOfClippedTokensAndTheEntropy) {
  Sequence good = calm(1);
  Sequence bad = calm(-1);
  good.logp_new[0] = -0.5;                   // Ratio 1.65: above 1.28.
  bad.logp_new[1] = bad.logp_new[2] = -1.5;  // Ratio 0.61: below 0.8.
  good.pad();
  const LossMetrics metrics = step({{good, bad}}).loss.metrics;
  EXPECT_EQ(metrics.num_tokens, 8U);
  EXPECT_EQ(metrics.num_clipped_high, 1U);
  EXPECT_EQ(metrics.num_clipped_low, 2U);
  EXPECT_NEAR(metrics.clip_share(), 3.0 / 8, 1e-12);
  EXPECT_NEAR(metrics.mean(metrics.sum_entropy), 0.5, 1e-12);
  EXPECT_NEAR(metrics.mean(metrics.sum_neg_logp), (0.5 + 5 + 3) / 8, 1e-12);
}

}  // namespace
}  // namespace mc::rl
