// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUDA_PIPELINE_PRIMITIVES_H_
#define MC_EMU_CUDA_PIPELINE_PRIMITIVES_H_

// CUDA's <cuda_pipeline_primitives.h>: asynchronous copies of one thread.  A copy is done when it
// is waited for, so a kernel that reads too early reads what was there before.

#include "cuda_runtime.h"

inline void __pipeline_memcpy_async(void* destination, const void* source, size_t size,
                                    size_t zeros = 0) {
  mc_emu_copy_begin(destination, source, static_cast<uint32_t>(size - zeros),
                    static_cast<uint32_t>(zeros));
}
inline void __pipeline_commit() { mc_emu_copy_commit(); }
inline void __pipeline_wait_prior(size_t groups) {
  mc_emu_copy_wait(static_cast<uint32_t>(groups));
}

#endif  // MC_EMU_CUDA_PIPELINE_PRIMITIVES_H_
