// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUDA_FP16_HPP_
#define MC_EMU_CUDA_FP16_HPP_

// Some code includes the second half of CUDA's header by name; here there is only one.
#include "cuda_fp16.h"

#endif  // MC_EMU_CUDA_FP16_HPP_
