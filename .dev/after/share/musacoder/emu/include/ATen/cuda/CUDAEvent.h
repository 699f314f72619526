// SPDX-License-Identifier: Apache-2.0
// PyTorch's header of this name on the emulated device.
#pragma once
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <utility>

namespace at::cuda {

class CUDAEvent {
 public:
  explicit CUDAEvent(unsigned = cudaEventDisableTiming) {}
  CUDAEvent(CUDAEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  CUDAEvent& operator=(CUDAEvent&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  CUDAEvent(const CUDAEvent&) = delete;
  CUDAEvent& operator=(const CUDAEvent&) = delete;
  ~CUDAEvent() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  operator cudaEvent_t() const { return event(); }
  cudaEvent_t event() const { return event_; }
  bool isCreated() const { return event_ != nullptr; }
  c10::DeviceIndex device_index() const { return 0; }
  std::optional<c10::Device> device() const { return CUDAStream().device(); }
  bool query() const { return true; }
  void record() { record(getCurrentCUDAStream()); }
  void record(const CUDAStream& stream) {
    if (event_ == nullptr) cudaEventCreate(&event_);
    cudaEventRecord(event_, stream);
  }
  void recordOnce(const CUDAStream& stream) {
    if (event_ == nullptr) record(stream);
  }
  void block(const CUDAStream& stream) {
    if (event_ != nullptr) cudaStreamWaitEvent(stream, event_);
  }
  void synchronize() const {}
  float elapsed_time(const CUDAEvent& end) const {
    float milliseconds = 0;
    cudaEventElapsedTime(&milliseconds, event_, end.event_);
    return milliseconds;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace at::cuda
