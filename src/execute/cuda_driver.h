// SPDX-License-Identifier: Apache-2.0
//
// Facts that a CUDA program would see of this machine's GPUs, without being one.
//
// A child process loads the driver's library and asks it; this process never loads it, so it holds
// no context, needs no CUDA to be built or to start, and goes on when the driver hangs or crashes.
// Asked rather than nvidia-smi, which containers often lack, which does not heed
// CUDA_VISIBLE_DEVICES, and which hangs with the driver.
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
  std::string uuid;  // "GPU-…", the device's own or, of a part of one, the whole one's.
  int major = 0;     // Compute capability.
  int minor = 0;
  int64_t bytes = 0;  // The bytes of memory.
  int multiprocessors = 0;
  int64_t shared_bytes_max = 0;  // Shared memory of a block, where it asks for more than usual.
  int64_t l2_bytes = 0;
  double bandwidth_gbs = 0;  // The memory's clock times its width; 1e9 bytes a second.
  bool operator==(const CudaDevice&) const = default;
};

struct CudaDriver {
  int cuda_major = 0;  // The newest CUDA that it can serve.
  int cuda_minor = 0;
  std::vector<CudaDevice> devices;  // At least one.
};

inline constexpr std::chrono::seconds kCudaDriverTimeMax{20};  // Eight sleeping GPUs take seconds.

// kNotFound when there is no such library, or no device that it shows; kTimeout when it does not
// answer; else kUnavailable with the driver's own words.  Not thread-safe against other forks.
// Names of functions begin with `prefix`: another platform's driver has the same ones.
Result<CudaDriver> ask_cuda_driver(const std::string& library = "libcuda.so.1",
                                   std::chrono::milliseconds time_max = kCudaDriverTimeMax,
                                   const std::string& prefix = "cu");

}  // namespace mc::execute

#endif  // MC_EXECUTE_CUDA_DRIVER_H_
