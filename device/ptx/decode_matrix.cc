// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices: mma.sync, and wmma by the same fragments.
#include <cstdio>

#include "ptx/decoder.h"

namespace mc::ptx {
namespace {

// The m, n and k of `m16n8k16`; zeros if no modifier is a shape.
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

// Rows and columns of a part of a product.
Decoder::Shape fragment_shape(const Instruction& one, char part, Type type) {
  const MatrixKey key = shape_of(one);
  if (part == 'a') return {key.m, key.k, type};
  if (part == 'b') return {key.k, key.n, type};
  return {key.m, key.n, type};
}

bool is_fragment(const Decoder::Shape& shape) {
  const bool is_small =
      shape.rows >= 1 && shape.rows <= 32 && shape.columns >= 1 && shape.columns <= 32;
  const int bytes = bytes_of(shape.type);
  return is_small && bytes >= 1 && bytes <= 8;
}

// True if the registers of all lanes hold each element, once or several times.
bool fills(const Decoder::Shape& shape, size_t registers) {
  const int bytes = bytes_of(shape.type), per = bytes >= 4 ? 1 : 4 / bytes;
  const int slots = 32 * static_cast<int>(registers) * per;
  return registers <= 64 && slots % (shape.rows * shape.columns) == 0 && slots > 0;
}

int64_t bits_of(Type type) {
  if (type == Type::kB1) return 1;
  if (type == Type::kU4 || type == Type::kS4) return 4;
  return is_fp8(type) ? 8 : 8 * bytes_of(type);
}

// True if a product may have elements of two types: integers of one width, or 8-bit floats.
bool may_mix(Type a, Type b) {
  if (is_fp8(a)) return is_fp8(b);
  return a == b || (is_integer(a) && bytes_of(a) == bytes_of(b));
}

}  // namespace

uint32_t Decoder::Shape::dimensions(size_t registers) const {
  return static_cast<uint32_t>(rows) | static_cast<uint32_t>(columns) << 8 |
         static_cast<uint32_t>(registers) << 16;
}

uint32_t Decoder::Shape::kind() const { return static_cast<uint32_t>(type); }

bool Decoder::try_matrix(const Instruction& one) {
  if (one.opcode == "mma") {
    matrix_product(one);
  } else if (one.opcode == "wmma" && one.has("load")) {
    fragment_load(one);
  } else if (one.opcode == "wmma" && one.has("store")) {
    fragment_store(one);
  } else if (one.opcode == "wmma") {
    fragment_product(one);
  } else {
    return false;
  }
  return true;
}

std::vector<uint32_t> Decoder::fragment(const Instruction& one, size_t index, int width,
                                        bool is_result) {
  std::vector<uint32_t> offsets;
  const Operand& given = operand(one, index);
  const std::vector<Operand> single = {given};
  for (const Operand& part : given.kind == Operand::Kind::kVector ? given.parts : single) {
    offsets.push_back(is_result ? result(part, width) : source(part, width));
  }
  return offsets;
}

// `mma.sync.aligned.shape.row.col.d.a.b.c {d}, {a}, {b}, {c}`
void Decoder::matrix_product(const Instruction& one) {
  MatrixKey key = shape_of(one);
  if (one.types.size() != 4 || one.has("sp") || !one.has("row") || !one.has("col")) {
    return mark_unsupported("this product of matrices is not supported");
  }
  key.d = one.types[0];
  key.a = one.types[1];
  key.b = one.types[2];
  key.c = one.types[3];
  if (!may_mix(key.a, key.b)) return fail("a and b have different types");
  const int width = key.a == Type::kF64 ? 8 : 4;
  std::vector<uint32_t> offsets;
  const int64_t bits = key.a == Type::kF64 ? 64 : 32;
  const int64_t element = bits_of(key.a);
  const int64_t sums = int64_t{key.m} * key.n / 32;
  const int64_t counts[4] = {
      key.d == Type::kF16 ? sums / 2 : sums, key.m * key.k * element / (32 * bits),
      key.n * key.k * element / (32 * bits), key.c == Type::kF16 ? sums / 2 : sums};
  for (size_t k = 0; k < 4; ++k) {
    const std::vector<uint32_t> part = fragment(one, k, width, k == 0);
    if (std::ssize(part) != counts[k]) return fail("a fragment has a wrong number of registers");
    offsets.insert(offsets.end(), part.begin(), part.end());
  }
  emit(variant_.matrix(key),
       {.flags = (one.has("satfinite") ? 1U : 0U) | (one.has("xor") ? 2U : 0U)});
  list(offsets);
}

// `wmma.load.a.sync.aligned.row.shape{.space}.type {registers}, [address] {, stride}`
void Decoder::fragment_load(const Instruction& one) {
  const char part = one.has("a") ? 'a' : one.has("b") ? 'b' : 'c';
  const Shape shape = fragment_shape(one, part, one.type());
  if (!is_fragment(shape)) return mark_unsupported("this fragment is not supported");
  fragment_access(one, shape, 0, 1, variant_.plain.load_fragment);
}

// `wmma.store.d.sync.aligned.row.shape{.space}.type [address], {registers} {, stride}`
void Decoder::fragment_store(const Instruction& one) {
  const Shape shape = fragment_shape(one, 'd', one.type());
  if (!is_fragment(shape)) return mark_unsupported("this fragment is not supported");
  fragment_access(one, shape, 1, 0, variant_.plain.store_fragment);
}

void Decoder::fragment_access(const Instruction& one, const Shape& shape, size_t data,
                              size_t memory, Handler handler) {
  const int width = shape.type == Type::kF64 ? 8 : 4;
  std::vector<uint32_t> offsets = fragment(one, data, width, data == 0);
  if (!fills(shape, offsets.size())) return fail("a fragment has a wrong number of registers");
  Step step = memory_step(one, operand(one, memory));
  step.b = one.operands.size() > 2 ? source(one, 2, 4) : 0;
  step.d = row(8);  // The lanes' addresses.
  step.c = shape.dimensions(offsets.size());
  step.e = shape.kind() | (one.has("col") ? 0x100 : 0);
  emit(handler, step);
  list(std::move(offsets));
}

// `wmma.mma.sync.aligned.row.col.shape.d{.a.b}.c {d}, {a}, {b}, {c}`
void Decoder::fragment_product(const Instruction& one) {
  if (!one.has("mma")) return mark_unsupported("this form of wmma is not supported");
  std::vector<Type> types = one.types;
  // Products of halves name only the types of d and c.
  if (types.size() == 2) types = {types[0], Type::kF16, Type::kF16, types[1]};
  if (types.size() != 4) return fail("it names a wrong number of types");
  constexpr char kParts[] = {'d', 'a', 'b', 'c'};
  std::vector<uint32_t> words;
  for (size_t k = 0; k < 4; ++k) {
    const Shape shape = fragment_shape(one, kParts[k], types[k]);
    if (!is_fragment(shape)) return mark_unsupported("this fragment is not supported");
    const std::vector<uint32_t> offsets =
        fragment(one, k, shape.type == Type::kF64 ? 8 : 4, k == 0);
    words.push_back(shape.dimensions(offsets.size()));
    words.push_back(shape.kind());
    words.insert(words.end(), offsets.begin(), offsets.end());
  }
  emit(variant_.plain.multiply_fragments, {.flags = one.has("satfinite") ? 1U : 0U});
  list(std::move(words));
}

}  // namespace mc::ptx
