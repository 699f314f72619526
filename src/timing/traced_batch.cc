// SPDX-License-Identifier: Apache-2.0
#include "timing/traced_batch.h"

#include <algorithm>
#include <limits>

#include "core/check.h"

namespace mc::timing {

double busy_call_us(std::span<const TracedBatch> batches) {
  double least_us = std::numeric_limits<double>::infinity();
  for (const TracedBatch& batch : batches) {
    MC_CHECK(batch.calls > 0);
    least_us = std::min(least_us, batch.busy_us / batch.calls);
  }
  return batches.empty() ? 0 : least_us;
}

bool begins_early(std::span<const TracedKernel> kernels) {
  return std::ranges::any_of(kernels, [](const auto& kernel) { return kernel.early > 0; });
}

}  // namespace mc::timing
