// SPDX-License-Identifier: Apache-2.0
// PyTorch's streams, guards and error checks on a CUDA device.  The emulated one has its own
// (emu/include/mc_emu/torch_cuda.h).
#ifndef MC_AT_CUDA_H_
#define MC_AT_CUDA_H_

#include <cuda_runtime_api.h>

#include "mc_at/torch.h"

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

inline DeviceIndex device_count() { return static_cast<DeviceIndex>(mc_at_cuda_device_count()); }
inline DeviceIndex current_device() { return static_cast<DeviceIndex>(mc_at_cuda_device()); }
inline void set_device(DeviceIndex device) { mc_at_cuda_exchange_device(device); }
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

namespace at::cuda {
using c10::cuda::CUDAStream;
using c10::cuda::getCurrentCUDAStream;
using c10::cuda::getDefaultCUDAStream;
using c10::cuda::getStreamFromPool;
using c10::cuda::setCurrentCUDAStream;
inline bool is_available() { return c10::cuda::device_count() > 0; }
inline const cudaDeviceProp* getDeviceProperties(c10::DeviceIndex device) {
  return static_cast<const cudaDeviceProp*>(mc_at_cuda_properties(device));
}
inline const cudaDeviceProp* getCurrentDeviceProperties() {
  return getDeviceProperties(c10::cuda::current_device());
}
inline int warp_size() { return getCurrentDeviceProperties()->warpSize; }
template <class T>
constexpr T ATenCeilDiv(T a, T b) {
  return (a + b - 1) / b;
}
}  // namespace at::cuda

#define C10_CUDA_CHECK(expression)                                    \
  do {                                                                \
    const cudaError_t __err = expression;                             \
    mc_at_cuda_check(static_cast<int32_t>(__err), __FILE__, __func__, \
                     static_cast<uint32_t>(__LINE__));                \
  } while (0)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define C10_CUDA_ERROR_HANDLED(expression) expression
#define C10_CUDA_IGNORE_ERROR(expression)                      \
  do {                                                         \
    if ((expression) != cudaSuccess) (void)cudaGetLastError(); \
  } while (0)
#define C10_CUDA_CLEAR_ERROR() (void)cudaGetLastError()
#define AT_CUDA_CHECK(expression) C10_CUDA_CHECK(expression)
#define CUDA_KERNEL_ASSERT(condition) assert(condition)

#define CUDA_KERNEL_LOOP_TYPE(i, n, index_type)                                                \
  for (index_type i = static_cast<index_type>(blockIdx.x) * blockDim.x + threadIdx.x; i < (n); \
       i += static_cast<index_type>(blockDim.x) * gridDim.x)
#define CUDA_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)

#endif  // MC_AT_CUDA_H_
