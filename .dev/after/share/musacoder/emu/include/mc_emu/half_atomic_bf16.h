// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_HALF_ATOMIC_BF16_H_
#define MC_EMU_HALF_ATOMIC_BF16_H_

// atomicAdd for __nv_bfloat16 and its pair (each half of a pair on its own, as in CUDA).
// cuda_bf16.h brings it in once the language is there, and never before its types are.

#include "mc_emu/atomic.h"

inline __nv_bfloat16 atomicAdd(__nv_bfloat16* address, __nv_bfloat16 value) {
  return ::mc_emu::atomic_update(address,
                                 [value](__nv_bfloat16 old) { return __hadd(old, value); });
}
inline __nv_bfloat162 atomicAdd(__nv_bfloat162* address, __nv_bfloat162 value) {
  return ::mc_emu::atomic_update(address,
                                 [value](__nv_bfloat162 old) { return __hadd2(old, value); });
}

#endif  // MC_EMU_HALF_ATOMIC_BF16_H_
