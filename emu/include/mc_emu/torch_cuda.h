// SPDX-License-Identifier: Apache-2.0
// PyTorch's CUDA helpers (streams, guards, error checks) on the emulated device.
//
// All are inline: a process that holds the real libc10_cuda must not lend its own.
#ifndef MC_EMU_TORCH_CUDA_H_
#define MC_EMU_TORCH_CUDA_H_

#include <ATen/core/DeprecatedTypeProperties.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Exception.h>
#include <c10/util/Half.h>

#include <optional>

#include "mc_emu/cuda.h"

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
  bool operator==(const CUDAStream& other) const { return stream_ == other.stream_; }
  bool operator!=(const CUDAStream& other) const { return stream_ != other.stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

inline CUDAStream getCurrentCUDAStream(c10::DeviceIndex = -1) { return CUDAStream(); }
inline CUDAStream getDefaultCUDAStream(c10::DeviceIndex = -1) { return CUDAStream(); }
inline CUDAStream getStreamFromPool(bool = false, c10::DeviceIndex = -1) { return CUDAStream(); }
inline CUDAStream getStreamFromPool(int, c10::DeviceIndex = -1) { return CUDAStream(); }
inline CUDAStream getStreamFromExternal(cudaStream_t stream, c10::DeviceIndex) {
  return CUDAStream(stream);
}
inline void setCurrentCUDAStream(CUDAStream) {}

inline c10::DeviceIndex device_count() { return 1; }
inline c10::DeviceIndex current_device() { return 0; }
inline void set_device(c10::DeviceIndex, bool = false) {}
inline void device_synchronize() {}
inline void stream_synchronize(cudaStream_t) {}

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
  explicit CUDAStreamGuard(CUDAStream) {}
  explicit CUDAStreamGuard(c10::Stream) {}
  void reset_stream(CUDAStream) {}
  CUDAStream current_stream() const { return CUDAStream(); }
  CUDAStream original_stream() const { return CUDAStream(); }
};

struct OptionalCUDAStreamGuard {
  OptionalCUDAStreamGuard() = default;
  explicit OptionalCUDAStreamGuard(std::optional<CUDAStream>) {}
  explicit OptionalCUDAStreamGuard(CUDAStream) {}
  void reset() {}
};

namespace compat {
using std::abs;
using std::ceil;
using std::copysign;
using std::cos;
using std::exp;
using std::floor;
using std::fma;
using std::log;
using std::log1p;
using std::max;
using std::min;
using std::pow;
using std::round;
using std::sin;
using std::sqrt;
using std::tan;
using std::tanh;
inline float rsqrt(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
}  // namespace compat

}  // namespace c10::cuda

namespace at::cuda {

using c10::cuda::CUDAGuard;
using c10::cuda::CUDAStream;
using c10::cuda::CUDAStreamGuard;
using c10::cuda::current_device;
using c10::cuda::device_count;
using c10::cuda::device_synchronize;
using c10::cuda::getCurrentCUDAStream;
using c10::cuda::getDefaultCUDAStream;
using c10::cuda::getStreamFromExternal;
using c10::cuda::getStreamFromPool;
using c10::cuda::OptionalCUDAGuard;
using c10::cuda::OptionalCUDAStreamGuard;
using c10::cuda::setCurrentCUDAStream;

inline bool is_available() { return true; }
inline cudaDeviceProp* getDeviceProperties(c10::DeviceIndex) {
  static cudaDeviceProp properties = [] {
    cudaDeviceProp p;
    cudaGetDeviceProperties(&p, 0);
    return p;
  }();
  return &properties;
}
inline cudaDeviceProp* getCurrentDeviceProperties() { return getDeviceProperties(0); }
inline int warp_size() { return warpSize; }

template <class T>
inline T ATenCeilDiv(T a, T b) {
  return (a + b - 1) / b;
}

}  // namespace at::cuda

namespace at {
// PyTorch has it for CUDA compilers only.
template <class T>
struct RestrictPtrTraits {
  using PtrType = T* __restrict__;
};
}  // namespace at

// PyTorch 2.11 no longer has it: AT_DISPATCH macros took x.type() once; much code still says so.
namespace detail {
template <class T, std::enable_if_t<std::is_same_v<T, at::DeprecatedTypeProperties>, int> = 0>
inline at::ScalarType scalar_type(const T& type) {
  return type.scalarType();
}
}  // namespace detail

namespace torch::cuda {
inline bool is_available() { return true; }
inline size_t device_count() { return 1; }
inline void synchronize(int64_t = -1) {}
}  // namespace torch::cuda

#define C10_CUDA_CHECK(expression)                                          \
  do {                                                                      \
    const cudaError_t mc_emu_error = (expression);                          \
    if (mc_emu_error != cudaSuccess) {                                      \
      (void)cudaGetLastError();                                             \
      TORCH_CHECK(false, "CUDA error: ", cudaGetErrorString(mc_emu_error)); \
    }                                                                       \
  } while (0)
#define C10_CUDA_CHECK_WARN(expression) (void)(expression)
#define C10_CUDA_IGNORE_ERROR(expression) (void)(expression)
#define C10_CUDA_CLEAR_ERROR() (void)cudaGetLastError()
#define C10_CUDA_ERROR_HANDLED(expression) (expression)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define AT_CUDA_CHECK(expression) C10_CUDA_CHECK(expression)
#define TORCH_CUDA_CHECK(expression) C10_CUDA_CHECK(expression)
#define THCudaCheck(expression) C10_CUDA_CHECK(expression)
#define CUDA_KERNEL_ASSERT(condition) assert(condition)
#define CUDA_KERNEL_ASSERT2(condition) assert(condition)

// Loops as PyTorch writes them.
#define CUDA_KERNEL_LOOP_TYPE(i, n, type)                                          \
  for (type i = static_cast<type>(blockIdx.x) * blockDim.x + threadIdx.x; i < (n); \
       i += static_cast<type>(blockDim.x) * gridDim.x)
#define CUDA_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)

// Atomic adds under PyTorch's names.
template <class T>
inline T gpuAtomicAdd(T* address, T value) {
  return atomicAdd(address, value);
}
template <class T>
inline void gpuAtomicAddNoReturn(T* address, T value) {
  atomicAdd(address, value);
}
inline long atomicAdd(long* address, long value) { return mc_emu::atomic_add(address, value); }
inline long gpuAtomicAdd(long* address, long value) { return atomicAdd(address, value); }

#endif  // MC_EMU_TORCH_CUDA_H_
