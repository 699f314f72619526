// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices whose elements the lanes of a warp hold: mma.sync of the reference
// (reference.h).
//
// Each lane has fragments of the matrices A (rows x depth), B (depth x columns) and C; the ISA's
// figures show which elements these are. Sums of floats are exact until their one rounding, so that
// a GPU, which rounds more often, agrees if all sums are exact, such as sums of small integers.
#ifndef MC_PTX_TESTING_REFERENCE_MATRIX_H_
#define MC_PTX_TESTING_REFERENCE_MATRIX_H_

#include <array>
#include <cstdint>
#include <vector>

#include "ptx/module.h"

namespace mc::ptx {

// The registers of one lane.
struct Fragments {
  std::vector<uint64_t> a, b, c, d;
};

// Fills d of all lanes. False if the reference does not support the shape or the types.
bool multiply_matrices(const Instruction& one, std::array<Fragments, 32>& lanes);

}  // namespace mc::ptx

#endif  // MC_PTX_TESTING_REFERENCE_MATRIX_H_
