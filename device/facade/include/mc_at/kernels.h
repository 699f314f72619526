// SPDX-License-Identifier: Apache-2.0
//
// The host side of CUDA source that g++ compiles without its device code (src/lex/split.h): the
// code that nvcc would generate before the text and around its kernels, with the same calls of the
// runtime. Another object has the table of kernels and the device code (src/cli/kernels).
#ifndef MC_AT_KERNELS_H_
#define MC_AT_KERNELS_H_

#include <cuda_runtime.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#define __launch_bounds__(...)
#define __maxnreg__(...)

// Device code may use this namespace; the headers that define its members are empty on the host.
namespace cooperative_groups {}
namespace nvcuda {
namespace wmma {}
}  // namespace nvcuda

extern "C" {
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes = 0,
                                     struct CUstream_st* stream = nullptr);
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream);
void** __cudaRegisterFatBinary(void* wrapper);
void __cudaRegisterFatBinaryEnd(void** binary);
void __cudaUnregisterFatBinary(void** binary);
void __cudaRegisterFunction(void** binary, const char* host, char* device, const char* name, int,
                            uint3*, uint3*, dim3*, dim3*, int*);

struct mc_at_kernel {
  const char* host;  // The address of its stand-in; null ends the table.
  const char* name;
};
extern const mc_at_kernel mc_at_kernels[] __attribute__((visibility("hidden")));
extern const char mc_at_device_code[] __attribute__((visibility("hidden")));
}

static void** mc_at_binary;

__attribute__((constructor)) static void mc_at_register() {
  static struct {
    int magic, version;
    const void* image;
    void* unused;
  } wrapper = {0x466243b1, 1, mc_at_device_code, nullptr};
  mc_at_binary = __cudaRegisterFatBinary(&wrapper);
  for (const mc_at_kernel* one = mc_at_kernels; one->host != nullptr; ++one) {
    __cudaRegisterFunction(mc_at_binary, one->host, const_cast<char*>(one->name), one->name, -1,
                           nullptr, nullptr, nullptr, nullptr, nullptr);
  }
  __cudaRegisterFatBinaryEnd(mc_at_binary);
  atexit([] { __cudaUnregisterFatBinary(mc_at_binary); });
}

// The body of a kernel's stand-in.
static inline void mc_at_launch(const void* kernel, void** values) {
  dim3 grid, block;
  size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
  if (__cudaPopCallConfiguration(&grid, &block, &shared_bytes, &stream) != cudaSuccess) return;
  cudaLaunchKernel(kernel, grid, block, values, shared_bytes, stream);
}

// Functions of cuda_runtime.h that only nvcc sees: they take kernels by type.
template <class T>
cudaError_t cudaFuncSetAttribute(T* kernel, cudaFuncAttribute attribute, int value) {
  return cudaFuncSetAttribute((const void*)kernel, attribute, value);
}
template <class T>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, T* kernel) {
  return cudaFuncGetAttributes(attributes, (const void*)kernel);
}
template <class T>
cudaError_t cudaFuncSetCacheConfig(T* kernel, cudaFuncCache config) {
  return cudaFuncSetCacheConfig((const void*)kernel, config);
}
// Functions of crt/math_functions.hpp that only nvcc sees.
#define MC_AT_EXTREMES(Type)                                       \
  static inline Type min(Type a, Type b) { return a < b ? a : b; } \
  static inline Type max(Type a, Type b) { return a > b ? a : b; }
MC_AT_EXTREMES(int)
MC_AT_EXTREMES(unsigned)
MC_AT_EXTREMES(long)
MC_AT_EXTREMES(unsigned long)
MC_AT_EXTREMES(long long)
MC_AT_EXTREMES(unsigned long long)
#undef MC_AT_EXTREMES

#endif  // MC_AT_KERNELS_H_
