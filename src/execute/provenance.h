// SPDX-License-Identifier: Apache-2.0
//
// Provenance: whose kernels ran in a traced burst, and how long.
//
// A kernel is the candidate's when the file that launched it is one of its compiled extensions, or
// a graph launched it; and its extensions hold a kernel of that name, which for a graph's must be
// as large and not one of PyTorch's.
#ifndef MC_EXECUTE_PROVENANCE_H_
#define MC_EXECUTE_PROVENANCE_H_

#include <span>
#include <string>
#include <vector>

#include "execute/traced_burst.h"
#include "task/verdict.h"

namespace mc::execute {

// What a candidate's artifact says of one of its kernels.
struct OwnKernel {
  std::string name;  // Mangled.
  int64_t spill_bytes = 0;
  int64_t registers = 0;
};

struct Provenance {
  std::vector<task::KernelTime> kernels;  // Longest first.
  double own_share = 0;                   // Of the kernels' time; copies and fills left out.
  double kernel_us = 0;                   // A call, all kernels but copies and fills.
  bool is_late = false;
};

// Shares are of all bursts together, so that what ran in one of them counts in full.  A launch
// takes the median of what it took in each burst, so that one which was disturbed is in no time.
// `own_libraries` are paths as the contestant was given them.  REQUIRES: each burst has a call, and
// each kernel a launch.
Provenance find_owners(std::span<const TracedBurst> bursts,
                       const std::vector<std::string>& own_libraries,
                       const std::vector<OwnKernel>& own_kernels);

}  // namespace mc::execute

#endif  // MC_EXECUTE_PROVENANCE_H_
