// SPDX-License-Identifier: Apache-2.0
//
// Medians and their confidence intervals, without an assumption about how the samples are spread.
#ifndef MC_TIMING_STATISTICS_H_
#define MC_TIMING_STATISTICS_H_

#include <span>

#include "task/verdict.h"

namespace mc::timing {

// The median of samples, and the interval between two of them that contains the true median with a
// probability of at least 95 % (order statistics; the binomial distribution).  With fewer than six
// samples no two reach 95 %: the interval then is from the smallest to the largest.
// REQUIRES: at least one sample.
task::Estimate estimate_median(std::span<const double> samples);

// Widens an interval of positive values for a spread that repetition inside one process cannot see:
// `spread` is a standard deviation of the logarithm, and adds in quadrature.
task::Estimate widened(const task::Estimate& estimate, double spread);

}  // namespace mc::timing

#endif  // MC_TIMING_STATISTICS_H_
