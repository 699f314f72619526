// SPDX-License-Identifier: Apache-2.0
// PyTorch's header of this name on the emulated device.
#pragma once
#include <c10/cuda/CUDACachingAllocator.h>
#include <optional>

namespace c10::cuda {

// Guards select the only device there is.
struct CUDAGuard {
  explicit CUDAGuard(c10::DeviceIndex) {}
  explicit CUDAGuard(c10::Device) {}
  void set_device(c10::Device) {}
  void reset_device(c10::Device) {}
  void set_index(c10::DeviceIndex) {}
  c10::Device original_device() const { return c10::Device(c10::DeviceType::PrivateUse1, 0); }
  c10::Device current_device() const { return c10::Device(c10::DeviceType::PrivateUse1, 0); }
};

struct OptionalCUDAGuard {
  OptionalCUDAGuard() = default;
  explicit OptionalCUDAGuard(std::optional<c10::Device>) {}
  explicit OptionalCUDAGuard(std::optional<c10::DeviceIndex>) {}
  void set_device(c10::Device) {}
  void reset_device(c10::Device) {}
  void set_index(c10::DeviceIndex) {}
  void reset() {}
};

struct CUDAStreamGuard {
  explicit CUDAStreamGuard(CUDAStream stream) : original_(getCurrentCUDAStream()) {
    setCurrentCUDAStream(stream);
  }
  explicit CUDAStreamGuard(c10::Stream) : original_(getCurrentCUDAStream()) {}
  CUDAStreamGuard(const CUDAStreamGuard&) = delete;
  ~CUDAStreamGuard() { setCurrentCUDAStream(original_); }
  void reset_stream(CUDAStream stream) { setCurrentCUDAStream(stream); }
  CUDAStream current_stream() const { return getCurrentCUDAStream(); }
  CUDAStream original_stream() const { return original_; }
  c10::Device current_device() const { return current_stream().device(); }
  c10::Device original_device() const { return original_.device(); }

 private:
  CUDAStream original_;
};

struct OptionalCUDAStreamGuard {
  OptionalCUDAStreamGuard() = default;
  explicit OptionalCUDAStreamGuard(CUDAStream stream) { guard_.emplace(stream); }
  explicit OptionalCUDAStreamGuard(std::optional<CUDAStream> stream) {
    if (stream) guard_.emplace(*stream);
  }
  void reset_stream(CUDAStream stream) {
    guard_.reset();
    guard_.emplace(stream);
  }
  void reset() { guard_.reset(); }

 private:
  std::optional<CUDAStreamGuard> guard_;
};

struct CUDAMultiStreamGuard {
  template <class Streams>
  explicit CUDAMultiStreamGuard(const Streams&) {}
};

}  // namespace c10::cuda
