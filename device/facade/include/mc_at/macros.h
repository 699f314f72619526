// SPDX-License-Identifier: Apache-2.0
#ifndef MC_AT_MACROS_H_
#define MC_AT_MACROS_H_

#include <cassert>

#ifdef __CUDACC__
#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_HOST __host__
#else
#define C10_HOST_DEVICE
#define C10_DEVICE
#define C10_HOST
#endif
#define C10_LAUNCH_BOUNDS_0 __launch_bounds__(256, 4)
#define C10_LAUNCH_BOUNDS_1(threads) __launch_bounds__(threads)
#define C10_LAUNCH_BOUNDS_2(threads, blocks) __launch_bounds__(threads, blocks)
#define C10_ALWAYS_INLINE __attribute__((always_inline)) inline
#define C10_NOINLINE __attribute__((noinline))
#define C10_RESTRICT __restrict
#define C10_UNUSED __attribute__((__unused__))
#define CUDA_KERNEL_ASSERT(condition) assert(condition)

// PyTorch's CUDA headers declare these names in c10::cuda and import them here.
namespace c10::cuda {}
namespace at::cuda {
using namespace c10::cuda;
}

#endif  // MC_AT_MACROS_H_
