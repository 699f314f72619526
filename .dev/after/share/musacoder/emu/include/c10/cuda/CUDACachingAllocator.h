// SPDX-License-Identifier: Apache-2.0
// PyTorch's header of this name on the emulated device.
#pragma once
#include <c10/cuda/CUDAAllocatorConfig.h>
#include <c10/cuda/CUDAStream.h>

namespace c10::cuda {

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

}  // namespace c10::cuda
