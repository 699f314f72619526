// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <c10/cuda/CUDAFunctions.h>

namespace c10::cuda {

class CUDAStream {
 public:
  CUDAStream(cudaStream_t stream, DeviceIndex device) : stream_(stream), device_(device) {}
  operator cudaStream_t() const { return stream_; }
  cudaStream_t stream() const { return stream_; }
  DeviceIndex device_index() const { return device_; }
  Device device() const { return Device(DeviceType::CUDA, device_); }
  bool query() const { return cudaStreamQuery(stream_) == cudaSuccess; }
  void synchronize() const {
    mc_at_cuda_check(static_cast<int32_t>(cudaStreamSynchronize(stream_)), __FILE__, __func__,
                     __LINE__);
  }
  bool operator==(const CUDAStream& other) const { return stream_ == other.stream_; }
  bool operator!=(const CUDAStream& other) const { return stream_ != other.stream_; }

 private:
  cudaStream_t stream_;
  DeviceIndex device_;
};

inline CUDAStream getCurrentCUDAStream(DeviceIndex device = -1) {
  if (device < 0) device = current_device();
  return {static_cast<cudaStream_t>(mc_at_cuda_stream(device)), device};
}
inline CUDAStream getDefaultCUDAStream(DeviceIndex device = -1) {
  if (device < 0) device = current_device();
  return {static_cast<cudaStream_t>(mc_at_cuda_default_stream(device)), device};
}
inline CUDAStream getStreamFromPool(bool high_priority = false, DeviceIndex device = -1) {
  if (device < 0) device = current_device();
  return {static_cast<cudaStream_t>(mc_at_cuda_pool_stream(high_priority, device)), device};
}
inline void setCurrentCUDAStream(CUDAStream stream) {
  mc_at_cuda_set_stream(stream.stream(), stream.device_index());
}

}  // namespace c10::cuda
