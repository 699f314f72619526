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
#include <tuple>
#include <utility>

#include "mc_emu/cuda.h"

// PyTorch's headers define these for CUDA's compiler alone.
#ifndef C10_LAUNCH_BOUNDS_1
#define C10_LAUNCH_BOUNDS_0 __launch_bounds__(256, 4)
#define C10_LAUNCH_BOUNDS_1(threads) __launch_bounds__(threads)
#define C10_LAUNCH_BOUNDS_2(threads, blocks) __launch_bounds__(threads, blocks)
#endif

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

inline c10::DeviceIndex device_count() { return 1; }
inline c10::DeviceIndex device_count_ensure_non_zero() { return 1; }
inline cudaError_t GetDevice(c10::DeviceIndex* device) { return *device = 0, cudaSuccess; }
inline cudaError_t SetDevice(c10::DeviceIndex device) { return cudaSetDevice(device); }
inline cudaError_t GetDeviceCount(int* count) { return cudaGetDeviceCount(count); }
inline c10::DeviceIndex ExchangeDevice(c10::DeviceIndex) { return 0; }
inline c10::DeviceIndex MaybeExchangeDevice(c10::DeviceIndex) { return 0; }
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

// Memory from PyTorch's allocator.
namespace CUDACachingAllocator {
inline void* raw_alloc(size_t bytes) {
  void* pointer = nullptr;
  cudaMalloc(&pointer, bytes);
  return pointer;
}
inline void* raw_alloc_with_stream(size_t bytes, cudaStream_t) { return raw_alloc(bytes); }
inline void raw_delete(void* pointer) { cudaFree(pointer); }
inline void emptyCache() {}
template <class Pointer>
inline void recordStream(const Pointer&, CUDAStream) {}
}  // namespace CUDACachingAllocator

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

using c10::cuda::CUDAMultiStreamGuard;
inline int getNumGPUs() { return 1; }
inline bool canDeviceAccessPeer(c10::DeviceIndex, c10::DeviceIndex) { return false; }

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
