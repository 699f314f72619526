// SPDX-License-Identifier: Apache-2.0
//
// Rules on the kernels that ran in forward (timing/provenance.h).  They detect what the sources do
// not show: calls that bypass the dispatcher, and kernels that are launched only for show.
#ifndef MC_LEGALITY_KERNELS_H_
#define MC_LEGALITY_KERNELS_H_

#include <string>
#include <vector>

#include "legality/policy.h"
#include "task/evidence.h"
#include "task/performance.h"

namespace mc::legality {

// One finding for each forbidden kernel, and one where the candidate's own kernels have too small a
// share of the time.  Findings have no location.
std::vector<task::RuleFinding> check_kernels(const Policy& policy,
                                             const std::vector<task::KernelTime>& kernels,
                                             double own_share);

}  // namespace mc::legality

#endif  // MC_LEGALITY_KERNELS_H_
