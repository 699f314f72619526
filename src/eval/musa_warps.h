// SPDX-License-Identifier: Apache-2.0
//
// Functions of a warp of 128 threads in MUSA device code, for nvcc.
//
// The compiler nvcc and CUDA's headers support warps of 32. device/musa/warps_of_128.cuh defines
// the functions for a whole warp under names that no CUDA header has: "mc" in place of the two
// underscores, so that each word keeps its column.
#ifndef MC_EVAL_MUSA_WARPS_H_
#define MC_EVAL_MUSA_WARPS_H_

#include <string>
#include <string_view>

namespace mc::eval {

// The source with "mcshfl_sync" where it has "__shfl_sync", and likewise for the others.
std::string with_warps_of_128(std::string_view source);

// The inverse, for messages of the compiler.
std::string without_warps_of_128(std::string_view text);

}  // namespace mc::eval

#endif  // MC_EVAL_MUSA_WARPS_H_
