// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUDA_BF16_H_
#define MC_EMU_CUDA_BF16_H_

// CUDA's <cuda_bf16.h> for code that runs on the CPU: __nv_bfloat16, __nv_bfloat162 and their
// functions.  See cuda_fp16.h; here __CUDA_NO_BFLOAT16_CONVERSIONS__,
// __CUDA_NO_BFLOAT16_OPERATORS__ and __CUDA_NO_BFLOAT162_OPERATORS__ remove parts (PyTorch's builds
// define the first).

#include "cuda_fp16.h"

#define MC_T __nv_bfloat16
#define MC_T2 __nv_bfloat162
#define MC_RAW __nv_bfloat16_raw
#define MC_RAW2 __nv_bfloat162_raw
#define MC_OTHER __half
#define MC_NAME bfloat16
#define MC_NAME2 bfloat162
#define MC_REPEATED 2bfloat162
#define MC_FORMAT ::mc_emu::Bf16
#ifdef __CUDA_NO_BFLOAT16_CONVERSIONS__
#define MC_CONVERSIONS 0
#else
#define MC_CONVERSIONS 1
#endif
#ifdef __CUDA_NO_BFLOAT16_OPERATORS__
#define MC_OPERATORS 0
#else
#define MC_OPERATORS 1
#endif
#ifdef __CUDA_NO_BFLOAT162_OPERATORS__
#define MC_OPERATORS2 0
#else
#define MC_OPERATORS2 1
#endif
#include "mc_emu/half_type.inc.h"
#include "mc_emu/half_undef.inc.h"

#ifndef __CUDA_NO_HALF_CONVERSIONS__
inline __half::__half(const __nv_bfloat16 other) : __half(__float2half(__bfloat162float(other))) {}
#endif
#ifndef __CUDA_NO_BFLOAT16_CONVERSIONS__
inline __nv_bfloat16::__nv_bfloat16(const __half other)
    : __nv_bfloat16(__float2bfloat16(__half2float(other))) {}
#endif

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

#define CUDART_INF_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x7F80u))
#define CUDART_NAN_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x7FFFu))
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x0001u))
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x7F7Fu))
#define CUDART_NEG_ZERO_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x8000u))
#define CUDART_ZERO_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x0000u))
#define CUDART_ONE_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x3F80u))

#endif  // MC_EMU_CUDA_BF16_H_

// Atomics need the language, which this header may precede; so they are looked for each time.
#ifdef MC_EMU_ATOMIC_H_
#include "mc_emu/half_atomic_bf16.h"
#endif
