// SPDX-License-Identifier: Apache-2.0
//
// The side of a threshold that a speed-up is on, if its confidence interval determines it.
#ifndef MC_TASK_SPEEDUP_H_
#define MC_TASK_SPEEDUP_H_

#include <algorithm>

#include "task/verdict.h"

namespace mc::task {

// The relevant thresholds: eager's own speed, and that of the Faster Rate (MusaCoder, section 5).
inline constexpr double kSpeedupThresholds[] = {1, 1.1};

// True if the interval contains `threshold`, so that the side is not known.
inline bool is_uncertain_at(const Estimate& speedup, double threshold) {
  return speedup.low <= threshold && threshold <= speedup.high;
}

// The same for one of kSpeedupThresholds.
inline bool is_uncertain(const Estimate& speedup) {
  return std::ranges::any_of(kSpeedupThresholds,
                             [&](double threshold) { return is_uncertain_at(speedup, threshold); });
}

}  // namespace mc::task

#endif  // MC_TASK_SPEEDUP_H_
