// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <c10/cuda/CUDAStream.h>

namespace c10::cuda {

class CUDAGuard {
 public:
  explicit CUDAGuard(DeviceIndex device)
      : before_(static_cast<DeviceIndex>(mc_at_cuda_exchange_device(device))), now_(device) {}
  explicit CUDAGuard(Device device) : CUDAGuard(device.index()) {}
  CUDAGuard(const CUDAGuard&) = delete;
  CUDAGuard& operator=(const CUDAGuard&) = delete;
  ~CUDAGuard() { mc_at_cuda_exchange_device(before_); }
  void set_device(Device device) { set_index(device.index()); }
  void set_index(DeviceIndex device) {
    mc_at_cuda_exchange_device(device);
    now_ = device;
  }
  Device original_device() const { return Device(DeviceType::CUDA, before_); }
  Device current_device() const { return Device(DeviceType::CUDA, now_); }

 private:
  DeviceIndex before_;
  DeviceIndex now_;
};

class OptionalCUDAGuard {
 public:
  OptionalCUDAGuard() = default;
  explicit OptionalCUDAGuard(std::optional<Device> device) {
    if (device) guard_.emplace(*device);
  }
  explicit OptionalCUDAGuard(std::optional<DeviceIndex> device) {
    if (device) guard_.emplace(*device);
  }
  void set_device(Device device) { set_index(device.index()); }
  void set_index(DeviceIndex device) {
    if (guard_) return guard_->set_index(device);
    guard_.emplace(device);
  }
  void reset() { guard_.reset(); }

 private:
  std::optional<CUDAGuard> guard_;
};

class CUDAStreamGuard {
 public:
  explicit CUDAStreamGuard(CUDAStream stream)
      : guard_(stream.device_index()), before_(getCurrentCUDAStream()), now_(stream) {
    setCurrentCUDAStream(stream);
  }
  CUDAStreamGuard(const CUDAStreamGuard&) = delete;
  CUDAStreamGuard& operator=(const CUDAStreamGuard&) = delete;
  ~CUDAStreamGuard() { setCurrentCUDAStream(before_); }
  CUDAStream current_stream() const { return now_; }
  CUDAStream original_stream() const { return before_; }

 private:
  CUDAGuard guard_;
  CUDAStream before_;
  CUDAStream now_;
};

}  // namespace c10::cuda
