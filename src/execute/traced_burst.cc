// SPDX-License-Identifier: Apache-2.0
#include "execute/traced_burst.h"

#include "execute/statistics.h"

namespace mc::execute {

double traced_call_us(std::span<const TracedBurst> bursts) {
  if (bursts.empty()) return 0;
  std::vector<double> calls_us;
  for (const TracedBurst& burst : bursts) {
    double burst_us = 0;
    for (const TracedKernel& kernel : burst.kernels) burst_us += kernel.time_us;
    calls_us.push_back(burst_us / burst.calls);
  }
  return estimate_median(calls_us).median;
}

}  // namespace mc::execute
