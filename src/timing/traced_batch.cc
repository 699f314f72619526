// SPDX-License-Identifier: Apache-2.0
#include "timing/traced_batch.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace mc::timing {
namespace {

double sum_us(const TracedBurst& burst) {
  return std::accumulate(
      burst.kernels.begin(), burst.kernels.end(), 0.0,
      [](double sum, const TracedKernel& kernel) { return sum + kernel.time_us; });
}

double least_call_us(std::span<const TracedBurst> bursts,
                     const std::function<double(const TracedBurst&)>& burst_us) {
  std::vector<double> calls_us;
  for (const TracedBurst& burst : bursts) calls_us.push_back(burst_us(burst) / burst.calls);
  return calls_us.empty() ? 0 : *std::ranges::min_element(calls_us);
}

}  // namespace

double traced_call_us(std::span<const TracedBurst> bursts) { return least_call_us(bursts, sum_us); }

double busy_call_us(std::span<const TracedBurst> bursts) {
  return least_call_us(bursts, [](const TracedBurst& burst) { return burst.busy_us; });
}

}  // namespace mc::timing
