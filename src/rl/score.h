// SPDX-License-Identifier: Apache-2.0
//
// The score s of a verdict for RL training: reward/score.h, with a speed-up that is robust to
// noise.
//
// In a group whose candidates are all correct, dividing by the group's spread would turn timing
// noise of 1e-4 into an advantage of 2.4.  So training rounds a speed-up nu to a grid: values up to
// the end of the dead zone become 1, larger values the nearest multiple of `step`.  Reports use
// reward::score itself.
// Example:
//   std::vector<std::optional<double>> s;  // One score for each turn.
//   s.push_back(training_score(verdict, {}));
#ifndef MC_RL_SCORE_H_
#define MC_RL_SCORE_H_

#include <cstdint>
#include <optional>

#include "reward/score.h"
#include "task/verdict.h"

namespace mc::rl {

// A score s >= kScorePassed means that the candidate is correct and legal; all others have s < 0.
inline constexpr double kScorePassed = 1;

struct SpeedGrid {
  double dead_zone = 1.05;  // Speed-ups nu up to this value count as 1; 0 = no dead zone.
  double step = 0.05;       // 0 = no rounding.
};

struct TrainingScoreOptions {
  reward::ScoreOptions score{};  // The members lambda and nu_max
  SpeedGrid speed{};
};

// The speed-up nu, rounded to the grid.  NaN and infinities are returned unchanged. REQUIRES:
// grid.dead_zone >= 0 and grid.step >= 0.
double speed_on_grid(double nu, const SpeedGrid& grid);

// The soft penalty for long answers (DAPO, arXiv 2503.14476, section 3.4).
struct OverlongOptions {
  int64_t tokens_max = 0;  // The maximum length of an answer that the generator writes.
  int64_t margin = 0;  // The penalty begins this many tokens before tokens_max; 0 switches it off.
};

// The penalty is 0 up to tokens_max - margin tokens, and then falls linearly to -1 at tokens_max.
// REQUIRES: 0 <= margin <= tokens_max.
double overlong_penalty(int64_t num_tokens, const OverlongOptions& options);

// The score of a verdict.  Empty for Unsupported and Infra, which reveal nothing about the
// candidate.
std::optional<double> training_score(const task::Verdict& verdict,
                                     const TrainingScoreOptions& options);

}  // namespace mc::rl

#endif  // MC_RL_SCORE_H_
