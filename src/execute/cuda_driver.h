// SPDX-License-Identifier: Apache-2.0
//
// Facts about this machine's GPUs as a CUDA program would see them, without making this process
// one.
//
// A child process loads the driver's library and queries it.  This process never loads it, so it
// holds no context, needs no CUDA to be built or to start, and survives when the driver hangs or
// crashes.  The tool nvidia-smi is not used: containers often lack it, it ignores
// CUDA_VISIBLE_DEVICES, and it hangs with the driver.
#ifndef MC_EXECUTE_CUDA_DRIVER_H_
#define MC_EXECUTE_CUDA_DRIVER_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"

namespace mc::execute {

struct CudaDevice {
  std::string name;  // "NVIDIA H100 80GB HBM3"
  std::string uuid;  // "GPU-…": the device's own id or, for a MIG instance, that of the whole GPU.
  int major = 0;     // Compute capability.
  int minor = 0;
  int64_t bytes = 0;  // The bytes of memory.
  int multiprocessors = 0;
  int64_t shared_bytes_max = 0;  // The maximal shared memory of a block, with opt-in.
  int64_t l2_bytes = 0;
  double bandwidth_gbs = 0;  // The memory clock times the bus width, in 1e9 bytes a second.
  bool operator==(const CudaDevice&) const = default;
};

struct CudaDriver {
  int cuda_major = 0;  // The newest CUDA version that the driver supports.
  int cuda_minor = 0;
  std::vector<CudaDevice> devices;  // At least one.
};

// Waking eight idle GPUs takes seconds.
inline constexpr std::chrono::seconds kCudaDriverTimeMax{20};

// Queries the driver.  kNotFound when there is no such library or no visible device; kTimeout when
// the driver does not respond; else kUnavailable with the driver's own message.  Not safe against
// forks in other threads.  Function names begin with `prefix`: another platform's driver has the
// same functions.
Result<CudaDriver> query_cuda_driver(const std::string& library = "libcuda.so.1",
                                     std::chrono::milliseconds time_max = kCudaDriverTimeMax,
                                     const std::string& prefix = "cu");

}  // namespace mc::execute

#endif  // MC_EXECUTE_CUDA_DRIVER_H_
