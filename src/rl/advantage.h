// SPDX-License-Identifier: Apache-2.0
//
// Group-relative advantage (GRPO): compares each of the n samples of a prompt with the group's
// mean.
//
//   A_i = (R_i - mean(R)) / (std(R) + eps),   std with n - 1
//
// The mean and the spread are computed before MirrorPop rejects any sequence: a rejection changes
// the loss, not the baseline.  Samples without a reward (outcome infra) enter neither.
// Example:
//   const GroupAdvantage group = group_advantage(rewards, {});
//   if (group.status != GroupStatus::kDropped) use(group.advantage);
#ifndef MC_RL_ADVANTAGE_H_
#define MC_RL_ADVANTAGE_H_

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace mc::rl {

enum class AdvantageScale {
  kStd,   // The formula above.
  kNone,  // A_i = R_i - mean(R), as Dr.GRPO has it.
};

struct AdvantageOptions {
  AdvantageScale scale = AdvantageScale::kStd;
  double eps = 1e-6;
  double spread_min = 1e-6;  // Rewards whose range max - min is at most this count as equal.
  double std_floor = 0;      // A smaller std counts as this value.
};

enum class GroupStatus {
  kSpread,    // The rewards differ: advantages by the formula above.
  kNoSpread,  // All rewards are equal: A = 0 exactly, whatever the rounding of the mean.
  kDropped,   // Fewer than 2 rewards, or fewer than n / 2: the loss leaves the group out.
};

struct GroupAdvantage {
  GroupStatus status = GroupStatus::kDropped;
  // The advantage of each sample, in order.  It is empty for a sample without a reward and for all
  // samples of a dropped group: the loss leaves these samples out.
  std::vector<std::optional<double>> advantage;
  size_t num_scored = 0;
  double mean = 0;  // The mean of the rewards; 0 where the group has none.
  double std = 0;   // With n - 1, before the floor; 0 for fewer than 2 rewards.
};

// Gives the unsupported samples of a group (by index) the lowest reward of the other samples.  If
// they were left out instead, they would fare better than failures, and a policy would learn to
// write them.  If no sample of the group has a reward, they stay without one. REQUIRES: the samples
// at these indices have no reward.
void give_minimum(std::span<std::optional<double>> rewards, std::span<const size_t> unsupported);

// REQUIRES: rewards are finite; the options are not negative.
GroupAdvantage group_advantage(std::span<const std::optional<double>> rewards,
                               const AdvantageOptions& options);

}  // namespace mc::rl

#endif  // MC_RL_ADVANTAGE_H_
