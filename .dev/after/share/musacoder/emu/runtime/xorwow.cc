// SPDX-License-Identifier: Apache-2.0
// Skipping steps of cuRAND's XORWOW, whose step multiplies a vector of 160 bits by a matrix over
// GF(2): to skip n steps we multiply by the powers M^(2^i) for the bits i of n.  The powers come
// from squaring, once a process.  Here rather than in a header: a kernel has no heap to keep them.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "mc_emu/abi.h"

namespace mc::emu {
namespace {

constexpr size_t kNumPowers = 67 + 64;  // A subsequence is 2^67 steps.

using Vector = std::array<uint32_t, 5>;
using Matrix = std::array<Vector, 160>;  // The images of the unit vectors.

Vector step(Vector v) {
  const uint32_t t = v[0] ^ (v[0] >> 2);
  for (size_t i = 0; i < 4; ++i) v[i] = v[i + 1];
  v[4] = (v[3] ^ (v[3] << 4)) ^ (t ^ (t << 1));
  return v;
}

Vector times(const Matrix& matrix, const Vector& v) {
  Vector product{};
  for (size_t bit = 0; bit < matrix.size(); ++bit) {
    if ((v[bit / 32] >> (bit % 32) & 1u) == 0) continue;
    for (size_t i = 0; i < v.size(); ++i) product[i] ^= matrix[bit][i];
  }
  return product;
}

using Powers = std::array<Matrix, kNumPowers>;

std::unique_ptr<const Powers> make_powers() {
  auto powers = std::make_unique<Powers>();
  for (size_t bit = 0; bit < 160; ++bit) {
    Vector unit{};
    unit[bit / 32] = 1u << (bit % 32);
    (*powers)[0][bit] = step(unit);
  }
  for (size_t i = 1; i < powers->size(); ++i) {
    const Matrix& root = (*powers)[i - 1];
    for (size_t bit = 0; bit < 160; ++bit) (*powers)[i][bit] = times(root, root[bit]);
  }
  return powers;
}

}  // namespace
}  // namespace mc::emu

void mc_emu_xorwow_skip(uint64_t count, int first_bit, uint32_t* words) {
  static const std::unique_ptr<const mc::emu::Powers> powers = mc::emu::make_powers();
  mc::emu::Vector v;
  for (size_t i = 0; i < v.size(); ++i) v[i] = words[i];
  for (auto bit = static_cast<size_t>(first_bit); count != 0; count >>= 1, ++bit) {
    if (count & 1u) v = mc::emu::times((*powers)[bit], v);
  }
  for (size_t i = 0; i < v.size(); ++i) words[i] = v[i];
}
