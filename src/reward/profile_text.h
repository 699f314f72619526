// SPDX-License-Identifier: Apache-2.0
//
// The text that a model reads about a measurement in order to make its next kernel faster.
//
// The lines, in order of use: the time of a call in comparison with the baselines; its roofline
// bound and the distance from it; the longest kernels with their use of the device; and a hint
// where a model can improve a number.  Only the verdict's JSON has numbers with all digits.  Not
// part of correctness: a wrong candidate has no profile.
//
//   Profile: a call takes 10.0 us (9.80 to 10.3).
//   It is 2.12 times as fast as eager PyTorch (2.06 to 2.20), which takes 21.2 us.
//   Bound by memory: the floor on this device is 5.79 us; the call runs at 58 % of its speed.
//   Kernel row_sum<...>: 8.20 us a call (82 %) in 1 launch, grid 128, block 256; 32 registers, ...
#ifndef MC_REWARD_PROFILE_TEXT_H_
#define MC_REWARD_PROFILE_TEXT_H_

#include "reward/page.h"
#include "task/performance.h"

namespace mc::reward {

// Writes the profile.  Names of kernels are the candidate's text and are quoted like it.
void write_profile(Page& page, const task::Performance& performance);

}  // namespace mc::reward

#endif  // MC_REWARD_PROFILE_TEXT_H_
