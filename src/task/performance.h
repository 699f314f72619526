// SPDX-License-Identifier: Apache-2.0
//
// Performance: the measurements of a candidate on a device.
#ifndef MC_TASK_PERFORMANCE_H_
#define MC_TASK_PERFORMANCE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mc::task {

// A median with its 95 % confidence interval.
struct Estimate {
  double median = 0;
  double low = 0;
  double high = 0;
  bool operator==(const Estimate&) const = default;
};

// All launches of one kernel in the traced calls.
struct KernelTime {
  std::string name;  // Mangled, as the device knows it.
  std::string
      // The owner: "candidate", or the library with the kernel: "libtorch_cuda.so", "driver", ...
      owner;
  double launches = 0;  // The number in each call.
  double time_us = 0;   // Time in each call, by events around each launch.
  double share = 0;     // The share of a call's device time.
  std::array<int64_t, 3> grid{};
  std::array<int64_t, 3> block{};
  int64_t registers = 0;     // The number for each thread.
  int64_t spill_bytes = 0;   // Stores and loads, from ptxas.
  int64_t shared_bytes = 0;  // Static and dynamic, of each block.
  double occupancy = 0;      // Resident warps as a share of a multiprocessor's maximum.
  bool operator==(const KernelTime&) const = default;
};

// The roofline of the candidate: the least time that the device needs for the bytes and operations.
struct Floor {
  double time_us = 0;        // max(bytes / bandwidth, operations / peak)
  std::string bound;         // "memory" or "compute": which of the two.
  int64_t bytes = 0;         // The bytes of inputs and outputs.
  double operations = 0;     // The operations of the reference.
  double bandwidth_gbs = 0;  // Measured on this device, 1e9 bytes a second.
  double peak_tflops = 0;    // Measured on this device for the task's dtype.
  bool operator==(const Floor&) const = default;
};

// The state of the device during timing, by NVML.
struct Clocks {
  int64_t sm_mhz_min = 0;
  int64_t sm_mhz_max = 0;
  int64_t memory_mhz = 0;
  std::vector<std::string> throttling;  // "power_cap", "thermal", ...
  bool operator==(const Clocks&) const = default;
};

// The method of timing (docs/timing.md).
struct Timing {
  // "enqueued": queued, then released at once; "host_synchronous": forward waits for the device.
  std::string mode;
  std::string cache;           // "inputs_cold": flushed before each batch, each input used once.
  int64_t batches = 0;         // The candidate's; the baseline has as many, alternately.
  int64_t calls = 0;           // The number in each batch.
  int64_t calls_verified = 0;  // Outputs of timed calls that the judge compared.
  bool tf32 = false;           // True if the baselines may use it.
  std::vector<std::string> notes;
  Clocks clocks;
  bool operator==(const Timing&) const = default;
};

// Measurements on the device; absent on the CPU backend, whose times are no evidence about a GPU.
struct Performance {
  Estimate speedup_eager;                   // The time of eager PyTorch over the candidate's.
  std::optional<Estimate> speedup_compile;  // The time of torch.compile over the candidate's.
  Estimate time_us;                         // The time of a call.
  Estimate time_eager_us;
  std::optional<Estimate> time_compile_us;
  Timing timing;
  double own_share = 0;  // The candidate's own kernels' share of the kernels' time.
  // The peak device memory of a call: parameters, results and temporaries, without its inputs, in
  // the blocks of 2 MiB that PyTorch's allocator requests.
  int64_t memory_bytes = 0;
  int64_t memory_eager_bytes = 0;
  std::vector<KernelTime> kernels;  // Longest first.
  Floor floor;
  bool operator==(const Performance&) const = default;
};

}  // namespace mc::task

#endif  // MC_TASK_PERFORMANCE_H_
