// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_HALF_ATOMIC_FP16_H_
#define MC_EMU_HALF_ATOMIC_FP16_H_

// atomicAdd for __half and its pair (each half of a pair on its own, as in CUDA).  cuda_fp16.h
// brings it in once the language is there, and never before its types are.

#include "mc_emu/atomic.h"

inline __half atomicAdd(__half* address, __half value) {
  return ::mc_emu::atomic_update(address, [value](__half old) { return __hadd(old, value); });
}
inline __half2 atomicAdd(__half2* address, __half2 value) {
  return ::mc_emu::atomic_update(address, [value](__half2 old) { return __hadd2(old, value); });
}

#endif  // MC_EMU_HALF_ATOMIC_FP16_H_
