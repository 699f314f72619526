// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_HALF_C10_H_
#define MC_EMU_HALF_C10_H_

// Makes at::Half and at::BFloat16 convert from and to __half and __nv_bfloat16, as they do in
// nvcc's builds: c10 declares these conversions only where __CUDACC__ is defined.  Include this
// before any other header of PyTorch.  Only the two headers of the types are read as by nvcc; c10's
// own macros come first, so that nothing else in PyTorch changes shape.

#include "cuda_bf16.h"

#include <c10/macros/Macros.h>

#ifdef __CUDACC__
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#else
#define __CUDACC__ 1
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#undef __CUDACC__
#endif

#endif  // MC_EMU_HALF_C10_H_
