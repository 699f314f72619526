// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <c10/cuda/CUDAFunctions.h>

namespace at::cuda {

inline bool is_available() { return c10::cuda::device_count() > 0; }
inline const cudaDeviceProp* getDeviceProperties(c10::DeviceIndex device) {
  return static_cast<const cudaDeviceProp*>(mc_at_cuda_properties(device));
}
inline const cudaDeviceProp* getCurrentDeviceProperties() {
  return getDeviceProperties(c10::cuda::current_device());
}
inline int warp_size() { return getCurrentDeviceProperties()->warpSize; }

}  // namespace at::cuda
