// SPDX-License-Identifier: Apache-2.0
//
// Medians and their confidence intervals, without an assumption about the distribution of the
// samples.
#ifndef MC_TIMING_STATISTICS_H_
#define MC_TIMING_STATISTICS_H_

#include <span>

#include "task/performance.h"

namespace mc::timing {

// The median of samples, and the interval between two of them that contains the true median with a
// probability of at least 95 % (order statistics; the binomial distribution).  With fewer than six
// samples no pair reaches 95 %, so the interval is from the smallest to the largest sample.
// REQUIRES: at least one sample.
task::Estimate estimate_median(std::span<const double> samples);

// Widens an interval of positive values by a spread between processes, which repetition inside one
// process does not show: `spread` is a standard deviation of the logarithm, and adds in quadrature.
task::Estimate widened(const task::Estimate& estimate, double spread);

}  // namespace mc::timing

#endif  // MC_TIMING_STATISTICS_H_
