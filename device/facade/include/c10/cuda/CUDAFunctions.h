// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <c10/cuda/CUDAException.h>

namespace c10::cuda {

inline DeviceIndex device_count() { return static_cast<DeviceIndex>(mc_at_cuda_device_count()); }
inline DeviceIndex current_device() { return static_cast<DeviceIndex>(mc_at_cuda_device()); }
inline void set_device(DeviceIndex device) { mc_at_cuda_exchange_device(device); }
inline cudaError_t MaybeSetDevice(DeviceIndex device) { return cudaSetDevice(device); }

}  // namespace c10::cuda
