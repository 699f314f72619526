// SPDX-License-Identifier: Apache-2.0
//
// The update of the policy from the episodes of a step; the same for new and for recorded episodes.
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
  int64_t updates = 1;  // The number of passes over the episodes of a step.
  // The parts of a pass, each of whole groups; each part is one optimizer step.
  int64_t mini_batches = 1;
  // Further updates of a step are skipped if the mean KL between old and new policy over a
  // mini-batch exceeds this value.
  std::optional<double> kl_stop;
  double lr = 0;
  // A seed with which the rewards of each group are shuffled among its episodes.  This is a control
  // experiment: the distribution of rewards stays the same, but they contain nothing to learn.
  std::optional<uint64_t> shuffle_seed;
};

struct UpdateResult {
  rl::StepPlan plan;
  std::vector<rl::Drift> drifts;  // The drift of each sequence, also if MirrorPop is off.
  // The values of the last update; 0 if there was none.
  double loss = 0;
  double policy_loss = 0;
  double grad_norm = 0;  // The norm before clipping.
  rl::LossMetrics metrics;
  int64_t num_updates = 0;  // The number of optimizer steps.
  double kl_old = 0;  // The mean k3 of the old policy against the new one, compared with kl_stop.
};

// The reward R of an episode: PrimeEcho plus the penalty, which is at most 0, for a long first
// answer.  Empty if a turn has no score.
std::optional<double> reward_of(const Episode& episode, const UpdateOptions& options);

// The episodes of the groups that an update learns from: groups whose rewards are all equal are
// left out (dynamic sampling; DAPO, section 3.2).
std::vector<Episode> with_spread(std::span<const Episode> episodes, const UpdateOptions& options);
// The number of groups that with_spread leaves out.
size_t num_without_spread(std::span<const Episode> episodes, const UpdateOptions& options);

// Updates the policy.  kInvalidInput if the gradient is not finite. REQUIRES: the episodes of a
// group are adjacent.
Result<UpdateResult> update_policy(Policy& policy, std::span<const Episode> episodes,
                                   const UpdateOptions& options);

}  // namespace mc::loop

#endif  // MC_LOOP_UPDATE_H_
