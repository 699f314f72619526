// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_HALF_ATOMIC_H_
#define MC_EMU_HALF_ATOMIC_H_

// atomicAdd for the 16-bit types and their pairs (each half of a pair on its own, as in CUDA).
// cuda_bf16.h and cuda_fp16.h bring it in once the language is there.

#include "cuda_bf16.h"
#include "mc_emu/atomic.h"

inline __half atomicAdd(__half* address, __half value) {
  return ::mc_emu::atomic_update(address, [value](__half old) { return __hadd(old, value); });
}
inline __half2 atomicAdd(__half2* address, __half2 value) {
  return ::mc_emu::atomic_update(address, [value](__half2 old) { return __hadd2(old, value); });
}
inline __nv_bfloat16 atomicAdd(__nv_bfloat16* address, __nv_bfloat16 value) {
  return ::mc_emu::atomic_update(address,
                                 [value](__nv_bfloat16 old) { return __hadd(old, value); });
}
inline __nv_bfloat162 atomicAdd(__nv_bfloat162* address, __nv_bfloat162 value) {
  return ::mc_emu::atomic_update(address,
                                 [value](__nv_bfloat162 old) { return __hadd2(old, value); });
}

#endif  // MC_EMU_HALF_ATOMIC_H_
