// SPDX-License-Identifier: Apache-2.0
//
// Group-relative advantage (GRPO): each of n samples of one prompt against the others.
//
//   A_i = (R_i - mean(R)) / (std(R) + eps),   std with n - 1
//
// Mean and spread are taken before MirrorPop rejects anything: rejection changes the loss, not the
// baseline.  Samples without a reward (infra) are in neither.
// Example:
//   const GroupAdvantage group = group_advantage(rewards, {});
//   if (group.fate != GroupFate::kDropped) use(group.advantage);
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
  double spread_min = 1e-6;  // A range max - min up to here is no spread.
  double std_floor = 0;      // The spread std counts as at least this.
};

enum class GroupFate {
  kSpread,    // Advantages as above.
  kNoSpread,  // All rewards the same: A = 0 exactly, whatever rounding makes of the mean.
  kDropped,   // Fewer than 2 rewards, or fewer than half of n: in no loss.
};

struct GroupAdvantage {
  GroupFate fate = GroupFate::kDropped;
  // A of each sample in order; empty for one without a reward and for all of a dropped group: such
  // samples are in no loss.
  std::vector<std::optional<double>> advantage;
  size_t num_scored = 0;
  double mean = 0;  // The mean of the rewards; 0 where there are none.
  double std = 0;   // With n - 1, before the floor; 0 where there are fewer than 2.
};

// Gives the unsupported samples of a group, by their numbers, the least reward of the others: left
// out, they would fare better than failures, and a policy would learn to write them.  They stay
// without a reward where no sample has one.
// REQUIRES: the numbers are of samples without a reward.
void give_minimum(std::span<std::optional<double>> rewards, std::span<const size_t> unsupported);

// REQUIRES: rewards are finite; the options are not negative.
GroupAdvantage group_advantage(std::span<const std::optional<double>> rewards,
                               const AdvantageOptions& options);

}  // namespace mc::rl

#endif  // MC_RL_ADVANTAGE_H_
