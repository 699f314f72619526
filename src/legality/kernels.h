// SPDX-License-Identifier: Apache-2.0
//
// Rules on the kernels that ran in forward (timing/provenance.h).  They see what no look at the
// sources can: calls that bypass the dispatcher, kernels that are launched for show.
#ifndef MC_LEGALITY_KERNELS_H_
#define MC_LEGALITY_KERNELS_H_

#include <string>
#include <vector>

#include "legality/policy.h"
#include "task/verdict.h"

namespace mc::legality {

// One finding for each kernel that may not run, and one where the candidate's own kernels take too
// small a share.  Findings have no place.
std::vector<task::RuleFinding> check_kernels(const Policy& policy,
                                             const std::vector<task::KernelTime>& kernels,
                                             double own_share);

}  // namespace mc::legality

#endif  // MC_LEGALITY_KERNELS_H_
