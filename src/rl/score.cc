// SPDX-License-Identifier: Apache-2.0
#include "rl/score.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <variant>

#include "core/check.h"
#include "reward/score.h"
#include "task/verdict.h"

namespace mc::rl {

double speed_on_grid(double nu, const SpeedGrid& grid) {
  MC_CHECK(grid.dead_zone >= 0 && grid.step >= 0);
  if (!std::isfinite(nu)) return nu;
  if (nu <= grid.dead_zone) return 1;
  return grid.step > 0 ? std::round(nu / grid.step) * grid.step : nu;
}

double overlong_penalty(int64_t num_tokens, const OverlongOptions& options) {
  MC_CHECK(options.margin >= 0 && options.margin <= options.tokens_max);
  if (options.margin == 0) return 0;
  const auto beyond = static_cast<double>(num_tokens - (options.tokens_max - options.margin));
  return -std::clamp(beyond / static_cast<double>(options.margin), 0.0, 1.0);
}

std::optional<double> training_score(const task::Verdict& verdict,
                                     const TrainingScoreOptions& options) {
  const auto* passed = std::get_if<task::Passed>(&verdict.outcome);
  if (passed == nullptr || !passed->performance) return reward::score(verdict, options.score);
  // Only the speed-up and the task's grade are set: reward::score reads nothing else.
  task::Performance performance;
  performance.speedup_eager.low =
      speed_on_grid(passed->performance->speedup_eager.low, options.speed);
  task::Verdict on_grid;
  on_grid.task_grade = verdict.task_grade;
  on_grid.outcome = task::Passed{.trials = {}, .performance = performance};
  return reward::score(on_grid, options.score);
}

}  // namespace mc::rl
