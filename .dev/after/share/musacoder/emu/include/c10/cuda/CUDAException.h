// SPDX-License-Identifier: Apache-2.0
// PyTorch's header of this name on the emulated device.
#pragma once
#include <c10/cuda/CUDAMacros.h>
#include <c10/util/Exception.h>

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
