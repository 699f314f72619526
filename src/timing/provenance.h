// SPDX-License-Identifier: Apache-2.0
//
// Provenance: the owners of the kernels of a call, and their times, from the device process's
// launch-by-launch record (device/cuda/call_items.h).
#ifndef MC_TIMING_PROVENANCE_H_
#define MC_TIMING_PROVENANCE_H_

#include <string>
#include <vector>

#include "task/performance.h"
#include "worker/protocol.h"

namespace mc::timing {

// A kernel in a candidate's artifact.
struct OwnKernel {
  std::string name;  // Mangled.
  int64_t spill_bytes = 0;
};

struct Provenance {
  std::vector<task::KernelTime> kernels;  // Longest first.
  // The own kernels' share of the kernels' time; copies and fills are excluded.
  double own_share = 0;
};

Provenance find_owners(const std::vector<worker::Kernel>& kernels,
                       const std::vector<OwnKernel>& own_kernels);

}  // namespace mc::timing

#endif  // MC_TIMING_PROVENANCE_H_
