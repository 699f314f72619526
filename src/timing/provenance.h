// SPDX-License-Identifier: Apache-2.0
//
// Provenance: whose kernels ran in a traced batch, and how long.
//
// A kernel is the candidate's when the file that holds its code is one of its compiled extensions,
// whatever it is called and whoever launched it.
#ifndef MC_TIMING_PROVENANCE_H_
#define MC_TIMING_PROVENANCE_H_

#include <span>
#include <string>
#include <vector>

#include "task/verdict.h"
#include "timing/traced_batch.h"

namespace mc::timing {

// What a candidate's artifact says of one of its kernels.
struct OwnKernel {
  std::string name;  // Mangled.
  int64_t spill_bytes = 0;
};

struct Provenance {
  std::vector<task::KernelTime> kernels;  // Longest first.
  double own_share = 0;                   // Of the kernels' time; copies and fills left out.
  bool is_late = false;
};

// Shares are of all batches together, so that what ran in one of them counts in full.  A launch
// takes the least of what it took in each batch, since what disturbs one makes it longer.
// `own_libraries` are paths as the contestant was given them.  REQUIRES: each batch has a call, and
// each kernel a launch.
Provenance find_owners(std::span<const TracedBatch> batches,
                       const std::vector<std::string>& own_libraries,
                       const std::vector<OwnKernel>& own_kernels);

}  // namespace mc::timing

#endif  // MC_TIMING_PROVENANCE_H_
