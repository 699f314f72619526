// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <c10/cuda/CUDAMacros.h>
#include <cuda_runtime_api.h>

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
