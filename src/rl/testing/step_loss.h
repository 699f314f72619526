// SPDX-License-Identifier: Apache-2.0
//
// The loss of a whole batch by plan_step() and sequence_loss(), for tests.  The trainer calls
// sequence_loss() for each sequence of a micro-batch instead.
#ifndef MC_RL_TESTING_STEP_LOSS_H_
#define MC_RL_TESTING_STEP_LOSS_H_

#include <vector>

#include "rl/step.h"

namespace mc::rl {

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

StepResult step_loss(const StepBatch& batch, const StepOptions& options);

}  // namespace mc::rl

#endif  // MC_RL_TESTING_STEP_LOSS_H_
