// SPDX-License-Identifier: Apache-2.0
// PyTorch's header of this name on the emulated device.
#pragma once
#include <c10/core/Stream.h>
#include <c10/cuda/CUDAFunctions.h>
#include <tuple>

namespace c10::cuda {

class CUDAStream {
 public:
  CUDAStream() = default;
  explicit CUDAStream(cudaStream_t stream) : stream_(stream) {}
  operator cudaStream_t() const { return stream_; }
  cudaStream_t stream() const { return stream_; }
  c10::DeviceIndex device_index() const { return 0; }
  c10::Device device() const { return c10::Device(c10::DeviceType::PrivateUse1, 0); }
  c10::StreamId id() const { return 0; }
  bool query() const { return true; }
  void synchronize() const {}
  int priority() const { return 0; }
  c10::Stream unwrap() const { return c10::Stream(c10::Stream::DEFAULT, device()); }
  operator c10::Stream() const { return unwrap(); }
  c10::DeviceType device_type() const { return c10::DeviceType::PrivateUse1; }
  static std::tuple<int, int> priority_range() { return {0, -5}; }
  bool operator==(const CUDAStream& other) const { return stream_ == other.stream_; }
  bool operator!=(const CUDAStream& other) const { return stream_ != other.stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// The stream that guards and setCurrentCUDAStream select.
inline CUDAStream& mc_emu_current_stream() {
  static CUDAStream current;
  return current;
}
inline CUDAStream getCurrentCUDAStream(c10::DeviceIndex = -1) { return mc_emu_current_stream(); }
inline CUDAStream getDefaultCUDAStream(c10::DeviceIndex = -1) { return CUDAStream(); }
// One stream serves for the pool: all work is done at once, but one may be captured.
inline CUDAStream getStreamFromPool(bool = false, c10::DeviceIndex = -1) {
  static const cudaStream_t stream = [] {
    cudaStream_t made = nullptr;
    cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
    return made;
  }();
  return CUDAStream(stream);
}
inline CUDAStream getStreamFromPool(int, c10::DeviceIndex = -1) { return getStreamFromPool(); }
inline CUDAStream getStreamFromExternal(cudaStream_t stream, c10::DeviceIndex) {
  return CUDAStream(stream);
}
inline void setCurrentCUDAStream(CUDAStream stream) { mc_emu_current_stream() = stream; }

}  // namespace c10::cuda
