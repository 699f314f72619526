// SPDX-License-Identifier: Apache-2.0
//
// The score s of a verdict as RL trains on it: reward/score.h with a speed-up made robust to noise.
//
// In a group whose candidates are all correct, division by the group's spread turns noise of 1e-4
// in timing into an advantage of 2.4.  So training sees a speed-up nu on a grid: up to the end of
// the dead zone it counts as 1, above it is rounded to the nearest multiple of `step`.  Reports use
// reward::score itself.
// Example:
//   std::vector<std::optional<double>> s;  // One a turn.
//   s.push_back(training_score(verdict, {}));
#ifndef MC_RL_SCORE_H_
#define MC_RL_SCORE_H_

#include <cstdint>
#include <optional>

#include "reward/score.h"
#include "task/verdict.h"

namespace mc::rl {

// A candidate of score s >= kScorePassed is correct and legal; all others score below 0.
inline constexpr double kScorePassed = 1;

struct SpeedGrid {
  double dead_zone = 1.05;  // Speed-ups nu up to here count as 1; 0 = no dead zone.
  double step = 0.05;       // 0 = no rounding.
};

struct TrainingScoreOptions {
  reward::ScoreOptions score{};  // The members lambda and nu_max
  SpeedGrid speed{};
};

// The speed-up nu as training sees it.  NaN and infinities come back as they are.
// REQUIRES: grid.dead_zone >= 0 and grid.step >= 0.
double speed_on_grid(double nu, const SpeedGrid& grid);

// The soft penalty for long answers (DAPO, arXiv 2503.14476, section 3.4).
struct OverlongOptions {
  int64_t tokens_max = 0;  // The longest answer that the generator writes.
  int64_t margin = 0;      // The last tokens before that limit; 0 switches the penalty off.
};

// 0 up to tokens_max - margin tokens, from there a straight line down to -1 at tokens_max.
// REQUIRES: 0 <= margin <= tokens_max.
double overlong_penalty(int64_t num_tokens, const OverlongOptions& options);

// Pure.  Empty for Unsupported and Infra, which say nothing of the candidate and are never scored.
std::optional<double> training_score(const task::Verdict& verdict,
                                     const TrainingScoreOptions& options);

}  // namespace mc::rl

#endif  // MC_RL_SCORE_H_
