// SPDX-License-Identifier: Apache-2.0
// CUDA's runtime interface, the part that makes sense on one synchronous device.
//
// Every symbol is renamed in the object file: the process may hold a real libcudart.  Streams and
// events exist but all work is done when a call returns.  After a fault in a kernel every call
// returns its error, as on a GPU.
#ifndef MC_EMU_RUNTIME_API_H_
#define MC_EMU_RUNTIME_API_H_

#include "mc_emu/driver_types.h"
#include "mc_emu/launch.h"

#define CUDART_VERSION 13000
#define CUDA_VERSION 13000
#define CUDART_CB

// Declares one function under its CUDA name, defined as mc_emu_<name>.
#define MC_EMU_CUDA(name, ...) cudaError_t name(__VA_ARGS__) __asm__("mc_emu_" #name)

#pragma GCC visibility push(default)
extern "C" {

MC_EMU_CUDA(cudaMalloc, void** pointer, size_t size);
MC_EMU_CUDA(cudaMallocAsync, void** pointer, size_t size, cudaStream_t stream);
MC_EMU_CUDA(cudaMallocManaged, void** pointer, size_t size, unsigned flags);
MC_EMU_CUDA(cudaMallocPitch, void** pointer, size_t* pitch, size_t width, size_t height);
MC_EMU_CUDA(cudaMallocHost, void** pointer, size_t size);
MC_EMU_CUDA(cudaHostAlloc, void** pointer, size_t size, unsigned flags);
MC_EMU_CUDA(cudaFree, void* pointer);
MC_EMU_CUDA(cudaFreeAsync, void* pointer, cudaStream_t stream);
MC_EMU_CUDA(cudaFreeHost, void* pointer);
MC_EMU_CUDA(cudaMemGetInfo, size_t* free_bytes, size_t* total_bytes);
MC_EMU_CUDA(cudaMemset, void* pointer, int value, size_t size);
MC_EMU_CUDA(cudaMemsetAsync, void* pointer, int value, size_t size, cudaStream_t stream);
MC_EMU_CUDA(cudaMemset2D, void* pointer, size_t pitch, int value, size_t width, size_t height);
MC_EMU_CUDA(cudaMemset2DAsync, void* pointer, size_t pitch, int value, size_t width, size_t height,
            cudaStream_t stream);
MC_EMU_CUDA(cudaMemcpy, void* to, const void* from, size_t size, cudaMemcpyKind kind);
MC_EMU_CUDA(cudaMemcpyAsync, void* to, const void* from, size_t size, cudaMemcpyKind kind,
            cudaStream_t stream);
MC_EMU_CUDA(cudaMemcpy2D, void* to, size_t to_pitch, const void* from, size_t from_pitch,
            size_t width, size_t height, cudaMemcpyKind kind);
MC_EMU_CUDA(cudaMemcpy2DAsync, void* to, size_t to_pitch, const void* from, size_t from_pitch,
            size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream);

MC_EMU_CUDA(cudaGetLastError, void);
MC_EMU_CUDA(cudaPeekAtLastError, void);
const char* cudaGetErrorString(cudaError_t error) __asm__("mc_emu_cudaGetErrorString");
const char* cudaGetErrorName(cudaError_t error) __asm__("mc_emu_cudaGetErrorName");

MC_EMU_CUDA(cudaGetDevice, int* device);
MC_EMU_CUDA(cudaSetDevice, int device);
MC_EMU_CUDA(cudaGetDeviceCount, int* count);
MC_EMU_CUDA(cudaGetDeviceProperties, cudaDeviceProp* properties, int device);
MC_EMU_CUDA(cudaDeviceGetAttribute, int* value, cudaDeviceAttr attribute, int device);
MC_EMU_CUDA(cudaDeviceSynchronize, void);
MC_EMU_CUDA(cudaDeviceReset, void);
MC_EMU_CUDA(cudaDeviceSetCacheConfig, cudaFuncCache config);
MC_EMU_CUDA(cudaDeviceSetSharedMemConfig, cudaSharedMemConfig config);
MC_EMU_CUDA(cudaDriverGetVersion, int* version);
MC_EMU_CUDA(cudaRuntimeGetVersion, int* version);

MC_EMU_CUDA(cudaStreamCreate, cudaStream_t* stream);
MC_EMU_CUDA(cudaStreamCreateWithFlags, cudaStream_t* stream, unsigned flags);
MC_EMU_CUDA(cudaStreamCreateWithPriority, cudaStream_t* stream, unsigned flags, int priority);
MC_EMU_CUDA(cudaStreamDestroy, cudaStream_t stream);
MC_EMU_CUDA(cudaStreamSynchronize, cudaStream_t stream);
MC_EMU_CUDA(cudaStreamQuery, cudaStream_t stream);
MC_EMU_CUDA(cudaStreamWaitEvent, cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
MC_EMU_CUDA(cudaStreamBeginCapture, cudaStream_t stream, cudaStreamCaptureMode mode);
MC_EMU_CUDA(cudaEventCreate, cudaEvent_t* event);
MC_EMU_CUDA(cudaEventCreateWithFlags, cudaEvent_t* event, unsigned flags);
MC_EMU_CUDA(cudaEventDestroy, cudaEvent_t event);
MC_EMU_CUDA(cudaEventRecord, cudaEvent_t event, cudaStream_t stream = nullptr);
MC_EMU_CUDA(cudaEventSynchronize, cudaEvent_t event);
MC_EMU_CUDA(cudaEventQuery, cudaEvent_t event);
MC_EMU_CUDA(cudaEventElapsedTime, float* milliseconds, cudaEvent_t start, cudaEvent_t end);

// The typed forms below call these.
cudaError_t mc_emu_function_set_attribute(const void* function, int attribute, int value);
cudaError_t mc_emu_function_get_attributes(cudaFuncAttributes* attributes, const void* function);
cudaError_t mc_emu_occupancy(int* blocks, int threads, size_t shared_bytes);

}  // extern "C"
#pragma GCC visibility pop

#undef MC_EMU_CUDA

// --- Typed forms.

template <class T>
inline cudaError_t cudaMalloc(T** pointer, size_t size) {
  return cudaMalloc(reinterpret_cast<void**>(pointer), size);
}
template <class T>
inline cudaError_t cudaMallocAsync(T** pointer, size_t size, cudaStream_t stream) {
  return cudaMallocAsync(reinterpret_cast<void**>(pointer), size, stream);
}
template <class T>
inline cudaError_t cudaMallocManaged(T** pointer, size_t size, unsigned flags = 1) {
  return cudaMallocManaged(reinterpret_cast<void**>(pointer), size, flags);
}
template <class T>
inline cudaError_t cudaMallocHost(T** pointer, size_t size) {
  return cudaMallocHost(reinterpret_cast<void**>(pointer), size);
}
template <class T>
inline cudaError_t cudaHostAlloc(T** pointer, size_t size, unsigned flags) {
  return cudaHostAlloc(reinterpret_cast<void**>(pointer), size, flags);
}

inline cudaError_t cudaMemsetAsync(void* pointer, int value, size_t size) {
  return cudaMemsetAsync(pointer, value, size, nullptr);
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind kind) {
  return cudaMemcpyAsync(to, from, size, kind, nullptr);
}

template <class T>
inline cudaError_t cudaMemcpyToSymbol(T& symbol, const void* from, size_t size, size_t offset = 0,
                                      cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
  if (offset + size > sizeof(T)) return cudaErrorInvalidValue;
  return cudaMemcpy(reinterpret_cast<char*>(const_cast<std::remove_const_t<T>*>(&symbol)) + offset,
                    from, size, kind);
}
template <class T>
inline cudaError_t cudaMemcpyToSymbolAsync(T& symbol, const void* from, size_t size,
                                           size_t offset = 0,
                                           cudaMemcpyKind kind = cudaMemcpyHostToDevice,
                                           cudaStream_t = nullptr) {
  return cudaMemcpyToSymbol(symbol, from, size, offset, kind);
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, size_t size, size_t offset = 0,
                                        cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
  if (offset + size > sizeof(T)) return cudaErrorInvalidValue;
  return cudaMemcpy(to, reinterpret_cast<const char*>(&symbol) + offset, size, kind);
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, size_t size,
                                             size_t offset = 0,
                                             cudaMemcpyKind kind = cudaMemcpyDeviceToHost,
                                             cudaStream_t = nullptr) {
  return cudaMemcpyFromSymbol(to, symbol, size, offset, kind);
}
template <class T>
inline cudaError_t cudaGetSymbolAddress(void** pointer, T& symbol) {
  *pointer = const_cast<std::remove_const_t<T>*>(&symbol);
  return cudaSuccess;
}
template <class T>
inline cudaError_t cudaGetSymbolSize(size_t* size, const T&) {
  *size = sizeof(T);
  return cudaSuccess;
}

// A kernel by name or by pointer.
template <class F>
inline const void* mc_emu_function_address(F* function) {
  return reinterpret_cast<const void*>(function);
}
template <class F>
inline cudaError_t cudaFuncSetAttribute(F* function, cudaFuncAttribute attribute, int value) {
  return mc_emu_function_set_attribute(mc_emu_function_address(function), attribute, value);
}
template <class F>
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, F* function) {
  return mc_emu_function_get_attributes(attributes, mc_emu_function_address(function));
}
template <class F>
inline cudaError_t cudaFuncSetCacheConfig(F*, cudaFuncCache) {
  return cudaSuccess;
}
template <class F>
inline cudaError_t cudaFuncSetSharedMemConfig(F*, cudaSharedMemConfig) {
  return cudaSuccess;
}
template <class F>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, F*, int threads,
                                                                 size_t shared_bytes) {
  return mc_emu_occupancy(blocks, threads, shared_bytes);
}
template <class F>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, F*,
                                                                          int threads,
                                                                          size_t shared_bytes,
                                                                          unsigned) {
  return mc_emu_occupancy(blocks, threads, shared_bytes);
}
template <class F>
inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, F*,
                                                      size_t shared_bytes = 0, int limit = 0) {
  *block = limit > 0 && limit < 1024 ? limit : 1024;
  int blocks = 0;
  const cudaError_t error = mc_emu_occupancy(&blocks, *block, shared_bytes);
  int multiprocessors = 0;
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0);
  *grid = blocks * multiprocessors;
  return error;
}

// --- Launches through pointers: cudaLaunchKernel and its cooperative form.

namespace mc_emu {

template <class F>
struct LaunchByPointer;

template <class... P>
struct LaunchByPointer<void (*)(P...)> {
  template <size_t... kIndex>
  static cudaError_t run(void (*kernel)(P...), const Config& config, void** arguments,
                         bool cooperative, std::index_sequence<kIndex...>) {
    return launch_as(
        cooperative, config, "cudaLaunchKernel", [kernel](P... p) { kernel(p...); },
        *static_cast<std::remove_cv_t<std::remove_reference_t<P>>*>(arguments[kIndex])...);
  }
};

}  // namespace mc_emu

template <class... P>
inline cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments,
                                    size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
  return mc_emu::LaunchByPointer<void (*)(P...)>::run(
      kernel, mc_emu::Config(grid, block, shared_bytes, stream), arguments, false,
      std::index_sequence_for<P...>());
}
template <class... P>
inline cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(P...), dim3 grid, dim3 block,
                                               void** arguments, size_t shared_bytes = 0,
                                               cudaStream_t stream = nullptr) {
  return mc_emu::LaunchByPointer<void (*)(P...)>::run(
      kernel, mc_emu::Config(grid, block, shared_bytes, stream), arguments, true,
      std::index_sequence_for<P...>());
}

#endif  // MC_EMU_RUNTIME_API_H_
