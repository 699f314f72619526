// SPDX-License-Identifier: Apache-2.0
// PyTorch's header of this name on the emulated device.
#pragma once
#include <c10/core/Device.h>
#include <c10/cuda/CUDAException.h>

namespace c10::cuda {

inline c10::DeviceIndex device_count() { return 1; }
inline c10::DeviceIndex device_count_ensure_non_zero() { return 1; }
inline cudaError_t GetDevice(c10::DeviceIndex* device) { return *device = 0, cudaSuccess; }
inline cudaError_t SetDevice(c10::DeviceIndex device) { return cudaSetDevice(device); }
inline cudaError_t MaybeSetDevice(c10::DeviceIndex device) { return cudaSetDevice(device); }
inline cudaError_t GetDeviceCount(int* count) { return cudaGetDeviceCount(count); }
inline c10::DeviceIndex ExchangeDevice(c10::DeviceIndex) { return 0; }
inline c10::DeviceIndex MaybeExchangeDevice(c10::DeviceIndex) { return 0; }
inline c10::DeviceIndex current_device() { return 0; }
inline void set_device(c10::DeviceIndex, bool = false) {}
inline void device_synchronize() {}
inline void stream_synchronize(cudaStream_t) {}

}  // namespace c10::cuda
