// SPDX-License-Identifier: Apache-2.0
//
// TracedBatch: what CUPTI's records say of the kernels that ran in a batch.
#ifndef MC_TIMING_TRACED_BATCH_H_
#define MC_TIMING_TRACED_BATCH_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mc::timing {

// One launched kernel of a traced batch, all alike launches together
// (harness/contestant/batches.py).
struct TracedKernel {
  std::string name;
  std::string owner;  // The file that holds it; or "runtime", "memory", "several", "unknown".
  uint64_t stream = 0;
  int64_t launches = 0;
  double time_us = 0;
  int64_t early = 0;  // Launches that began before the gate was opened,
  int64_t late = 0;   // and that began after the device had been waited for.
  std::array<int64_t, 3> grid{};
  std::array<int64_t, 3> block{};
  int64_t registers = 0;
  int64_t shared_bytes = 0;
};

struct TracedBatch {
  std::vector<TracedKernel> kernels;
  int calls = 1;
  double busy_us = 0;  // In which anything ran, however much of it at once.
};

// Microseconds of a call in which anything ran, of the batch with the least, since what disturbs
// one makes it longer; 0 without batches.  REQUIRES: each batch has a call.
double busy_call_us(std::span<const TracedBatch> batches);

// Whether some work of the batch began before the gate was opened.
bool begins_early(std::span<const TracedKernel> kernels);

}  // namespace mc::timing

#endif  // MC_TIMING_TRACED_BATCH_H_
