// SPDX-License-Identifier: Apache-2.0
//
// TracedBurst: what CUPTI's records say of the kernels that ran in a burst, and of a call's time in
// several of them.
#ifndef MC_TIMING_TRACED_BATCH_H_
#define MC_TIMING_TRACED_BATCH_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mc::timing {

// One launched kernel of a traced burst, all alike launches together
// (harness/contestant/bursts.py).
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

struct TracedBurst {
  std::vector<TracedKernel> kernels;
  int calls = 1;
  double busy_us = 0;  // In which anything ran, however much of it at once.
};

// Microseconds of a call's kernels, copies and fills: together, and in which any ran.  Of the burst
// with the least time, since what disturbs one makes it longer; 0 without bursts.  REQUIRES: each
// burst has a call.
double traced_call_us(std::span<const TracedBurst> bursts);
double busy_call_us(std::span<const TracedBurst> bursts);

}  // namespace mc::timing

#endif  // MC_TIMING_TRACED_BATCH_H_
