// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUDA_FP16_H_
#define MC_EMU_CUDA_FP16_H_

// CUDA's <cuda_fp16.h> for code that runs on the CPU: __half, __half2 and their functions,
// correctly rounded.  The types are trivial, 2 and 4 bytes, with the bits of a GPU, so a pointer to
// at::Half may be read as a pointer to __half.
//
// The macros __CUDA_NO_HALF_CONVERSIONS__, __CUDA_NO_HALF_OPERATORS__ and
// __CUDA_NO_HALF2_OPERATORS__ remove the implicit conversions and the operators, as in CUDA;
// PyTorch's builds of extensions define all three.

#include <cmath>
#include <cstdint>

#include "mc_emu/half_bits.h"
#include "mc_emu/vector_types.h"

struct __half;
struct __nv_bfloat16;

namespace mc_emu {

// Clamped to [0, 1]; NaN becomes 0.
MC_EMU_INLINE float saturated(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }

// The greater number: a number beats NaN, and +0 beats -0.
MC_EMU_INLINE float greater(float x, float y) {
  if (x != x) return y;
  if (y != y) return x;
  if (x == y) return std::signbit(x) ? y : x;
  return x > y ? x : y;
}

}  // namespace mc_emu

#define MC_T __half
#define MC_T2 __half2
#define MC_RAW __half_raw
#define MC_RAW2 __half2_raw
#define MC_OTHER __nv_bfloat16
#define MC_NAME half
#define MC_NAME2 half2
#define MC_REPEATED 2half2
#define MC_FORMAT ::mc_emu::Fp16
#ifdef __CUDA_NO_HALF_CONVERSIONS__
#define MC_CONVERSIONS 0
#else
#define MC_CONVERSIONS 1
#endif
#ifdef __CUDA_NO_HALF_OPERATORS__
#define MC_OPERATORS 0
#else
#define MC_OPERATORS 1
#endif
#ifdef __CUDA_NO_HALF2_OPERATORS__
#define MC_OPERATORS2 0
#else
#define MC_OPERATORS2 1
#endif
#include "mc_emu/half_type.inc.h"
#include "mc_emu/half_undef.inc.h"

typedef __half half;
typedef __half2 half2;
typedef __half __nv_half;
typedef __half2 __nv_half2;
typedef __half_raw __nv_half_raw;
typedef __half2_raw __nv_half2_raw;
typedef __half nv_half;
typedef __half2 nv_half2;

#define CUDART_INF_FP16 __ushort_as_half(static_cast<unsigned short>(0x7C00u))
#define CUDART_NAN_FP16 __ushort_as_half(static_cast<unsigned short>(0x7FFFu))
#define CUDART_MIN_DENORM_FP16 __ushort_as_half(static_cast<unsigned short>(0x0001u))
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(static_cast<unsigned short>(0x7BFFu))
#define CUDART_NEG_ZERO_FP16 __ushort_as_half(static_cast<unsigned short>(0x8000u))
#define CUDART_ZERO_FP16 __ushort_as_half(static_cast<unsigned short>(0x0000u))
#define CUDART_ONE_FP16 __ushort_as_half(static_cast<unsigned short>(0x3C00u))

#endif  // MC_EMU_CUDA_FP16_H_

// Atomics need the language, which this header may precede; so they are looked for each time.
#ifdef MC_EMU_ATOMIC_H_
#include "mc_emu/half_atomic_fp16.h"
#endif
