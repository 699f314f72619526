// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices: mma.sync, and wmma by the same fragments.
#include <cstdio>

#include "ptx/decoder.h"

namespace mc::ptx {
namespace {

// m, n, k of `m16n8k16`; zeros if no modifier is a shape.
MatrixKey shape_of(const Instruction& one) {
  MatrixKey key;
  for (const std::string& modifier : one.modifiers) {
    int m = 0, n = 0, k = 0;
    if (std::sscanf(modifier.c_str(), "m%4dn%4dk%4d", &m, &n, &k) != 3) continue;
    key.m = m;
    key.n = n;
    key.k = k;
  }
  return key;
}

}  // namespace

bool Decoder::try_matrix(const Instruction& one) {
  if (one.opcode == "mma") {
    matrix_product(one);
    return true;
  }
  return false;
}

std::vector<uint32_t> Decoder::fragment(const Instruction& one, size_t index, int width,
                                        bool is_result) {
  std::vector<uint32_t> places;
  const Operand& given = operand(one, index);
  const std::vector<Operand> single = {given};
  for (const Operand& part : given.kind == Operand::Kind::kVector ? given.parts : single) {
    places.push_back(is_result ? result(part, width) : source(one, part, width));
  }
  return places;
}

// mma.sync.aligned.shape.row.col.d.a.b.c {d}, {a}, {b}, {c}
void Decoder::matrix_product(const Instruction& one) {
  MatrixKey key = shape_of(one);
  if (one.types.size() != 4 || one.has("sp") || !one.has("row") || !one.has("col")) {
    return lack("this product of matrices is not supported");
  }
  key.d = one.types[0];
  key.a = one.types[1];
  key.b = one.types[2];
  key.c = one.types[3];
  const bool mixes = key.a != key.b && !(is_integer(key.a) && bytes_of(key.a) == bytes_of(key.b));
  if (mixes) return fail("a and b have different types");
  const int width = key.a == Type::kF64 ? 8 : 4;
  std::vector<uint32_t> places;
  const int64_t bits = key.a == Type::kF64 ? 64 : 32;
  const int64_t element = key.a == Type::kB1 ? 1 : bytes_of(key.a) == 0 ? 4 : 8 * bytes_of(key.a);
  const int64_t sums = int64_t{key.m} * key.n / 32;
  const int64_t counts[4] = {
      key.d == Type::kF16 ? sums / 2 : sums, key.m * key.k * element / (32 * bits),
      key.n * key.k * element / (32 * bits), key.c == Type::kF16 ? sums / 2 : sums};
  for (size_t k = 0; k < 4; ++k) {
    const std::vector<uint32_t> part = fragment(one, k, width, k == 0);
    if (std::ssize(part) != counts[k]) return fail("a fragment has a wrong number of registers");
    places.insert(places.end(), part.begin(), part.end());
  }
  Step& step = emit(variant_.matrix(key));
  step.flags = (one.has("satfinite") ? 1U : 0U) | (one.has("xor") ? 2U : 0U);
  list(places);
}

}  // namespace mc::ptx
