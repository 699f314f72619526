// SPDX-License-Identifier: Apache-2.0
//
// From the episodes of a step to a change of the policy: the same for episodes that were just made
// and for recorded ones.
#ifndef MC_LOOP_UPDATE_H_
#define MC_LOOP_UPDATE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/result.h"
#include "loop/episode.h"
#include "loop/policy.h"
#include "rl/mirror_pop.h"
#include "rl/prime_echo.h"
#include "rl/score.h"
#include "rl/step.h"

namespace mc::loop {

struct UpdateOptions {
  rl::StepOptions step;
  rl::PrimeEchoOptions prime_echo;
  rl::OverlongOptions overlong;
  int64_t updates = 1;       // Passes over the episodes of a step.
  int64_t mini_batches = 1;  // Parts of a pass, by groups; each is a step of the optimiser.
  // The mean KL of old and new policy, over a mini-batch, from which on a step's further updates
  // are left out.
  std::optional<double> kl_stop;
  double lr = 0;
  // The seed of an order in which the rewards of each group go to its episodes, or none: the
  // control that has the true rewards, and nothing to learn from them.
  std::optional<uint64_t> shuffle_seed;
};

struct UpdateResult {
  rl::StepPlan plan;
  std::vector<rl::Drift> drifts;  // The drifts of each sequence, whether MirrorPop is on or not.
  // The values of the last update; 0 where none was made.
  double loss = 0;
  double policy_loss = 0;
  double grad_norm = 0;  // Before it was limited.
  rl::LossMetrics metrics;
  int64_t num_updates = 0;  // Steps of the optimiser.
  double kl_old = 0;        // The mean k3 of the old policy against the new one; kl_stop's.
};

// The reward R of an episode: PrimeEcho's, and the penalty for a long first answer.  Empty where a
// turn has no score.
std::optional<double> reward_of(const Episode& episode, const UpdateOptions& options);

// The episodes of the groups that an update learns from, without those whose rewards are all the
// same (dynamic sampling; DAPO, section 3.2).
std::vector<Episode> with_spread(std::span<const Episode> episodes, const UpdateOptions& options);
// The number of the groups that it leaves out.
size_t num_without_spread(std::span<const Episode> episodes, const UpdateOptions& options);

// REQUIRES: the episodes of a group follow one another.  kInvalidInput where the gradient is no
// longer a finite number.
Result<UpdateResult> update_policy(Policy& policy, std::span<const Episode> episodes,
                                   const UpdateOptions& options);

}  // namespace mc::loop

#endif  // MC_LOOP_UPDATE_H_
