// SPDX-License-Identifier: Apache-2.0
//
// 8-bit floats of the reference: each of the 256 codes is tried, and the nearest one taken.
#ifndef MC_PTX_TESTING_REFERENCE_FP8_H_
#define MC_PTX_TESTING_REFERENCE_FP8_H_

#include <cstdint>
#include <span>

#include "ptx/module.h"

namespace mc::ptx {

// The code of the nearest finite number, of two the even code. NaN gives 0x7F.
uint64_t nearest_fp8(long double value, Type type);

// The result of a cvt between a pair of 8-bit floats and f32 or f16x2.
uint64_t convert_fp8(const Instruction& one, std::span<const uint64_t> sources);

}  // namespace mc::ptx

#endif  // MC_PTX_TESTING_REFERENCE_FP8_H_
