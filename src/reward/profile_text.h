// SPDX-License-Identifier: Apache-2.0
//
// The text that a model reads about a measurement, so that its next kernel is faster.
//
// Some lines in order of use: the time of a call and how it compares with the baselines; what
// bounds it and how far it is from that bound; the longest kernels with what they take of the
// device; and a hint where a number is one that a model can do something about.  Full numbers are
// in the verdict's JSON alone.  Not part of correctness: a wrong candidate has no profile.
//
//   Profile: a call takes 10.0 us (9.80 to 10.3).
//   It is 2.12 times as fast as eager PyTorch (2.06 to 2.20), which takes 21.2 us.
//   Bound by memory: the floor on this device is 5.79 us; the call runs at 58 % of its speed.
//   Kernel row_sum<...>: 8.20 us a call (82 %) in 1 launch, grid 128, block 256; 32 registers, ...
#ifndef MC_REWARD_PROFILE_TEXT_H_
#define MC_REWARD_PROFILE_TEXT_H_

#include "reward/page.h"
#include "task/verdict.h"

namespace mc::reward {

// Names of kernels are the candidate's and are quoted like all that is.
void write_profile(Page& page, const task::Performance& performance);

}  // namespace mc::reward

#endif  // MC_REWARD_PROFILE_TEXT_H_
