// SPDX-License-Identifier: Apache-2.0
#include "ptx/testing/reference_matrix.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "ptx/testing/reference_values.h"

namespace mc::ptx {
namespace {

struct Shape {
  int rows = 0, columns = 0, depth = 0;
};

struct Element {
  int row = 0, column = 0;
};

// "m16n8k32"
Shape shape_of(const Instruction& one) {
  for (const std::string& modifier : one.modifiers) {
    Shape shape;
    if (std::sscanf(modifier.c_str(), "m%dn%dk%d", &shape.rows, &shape.columns, &shape.depth) ==
        3) {
      return shape;
    }
  }
  return {};
}

int bits_of(Type type) {
  if (type == Type::kTf32) return 32;
  return is_fp8(type) ? 8 : 8 * bytes_of(type);
}

// The row and column of a lane's element of A.  A register holds as many neighbours of a row as
// fit; then come the rows 8 below, and then the next columns.
Element element_of_a(const Shape& shape, Type type, int lane, int index) {
  const int group = lane / 4, in_group = lane % 4, per_register = std::max(1, 32 / bits_of(type));
  const int reg = index / per_register, part = index % per_register;
  const int halves = shape.rows / 8;
  const int block = reg / halves;
  return {group + 8 * (reg % halves), (in_group + 4 * block) * per_register + part};
}

// The row and column of a lane's element of B, which are A's exchanged.
Element element_of_b(Type type, int lane, int index) {
  const int group = lane / 4, in_group = lane % 4, per_register = std::max(1, 32 / bits_of(type));
  const int reg = index / per_register, part = index % per_register;
  return {(in_group + 4 * reg) * per_register + part, group};
}

// The row and column of a lane's element of C and D: pairs of a row, then the pair 8 rows below.
Element element_of_c(int lane, int index) {
  return {lane / 4 + 8 * (index / 2), lane % 4 * 2 + index % 2};
}

uint64_t part_of(const std::vector<uint64_t>& registers, Type type, int index) {
  const int per_register = std::max(1, 32 / bits_of(type));
  const auto reg = static_cast<size_t>(index / per_register);
  if (reg >= registers.size()) return 0;
  return bits_as(registers[reg] >> (index % per_register * bits_of(type)), type);
}

long double value_of(uint64_t bits, Type type) {
  return is_float(type) ? float_as(bits, type) : static_cast<long double>(integer_as(bits, type));
}

using Matrix = std::vector<std::vector<long double>>;

Matrix matrix(int rows, int columns) {
  return Matrix(static_cast<size_t>(rows), std::vector<long double>(static_cast<size_t>(columns)));
}

uint64_t encode_sum(const Instruction& one, long double sum, Type type) {
  if (is_float(type)) return encode(sum, type, RoundingMode::kNearest);
  if (one.has("satfinite")) sum = std::clamp(sum, -2147483648.0L, 2147483647.0L);
  return static_cast<uint64_t>(static_cast<int64_t>(sum));
}

}  // namespace

bool multiply_matrices(const Instruction& one, std::array<Fragments, 32>& lanes) {
  const Shape shape = shape_of(one);
  if (one.types.size() != 4 || shape.rows % 8 != 0 || shape.columns != 8) return false;
  const Type d_type = one.types[0], a_type = one.types[1], b_type = one.types[2];
  const Type c_type = one.types[3];
  if (shape.rows == 0 || bits_of(a_type) == 0 || !one.has("row") || !one.has("col")) return false;
  Matrix a = matrix(shape.rows, shape.depth), b = matrix(shape.depth, 8), c = matrix(shape.rows, 8);
  auto put = [](Matrix& to, const Element& at, long double value) {
    to.at(static_cast<size_t>(at.row)).at(static_cast<size_t>(at.column)) = value;
  };
  const int a_count = shape.rows * shape.depth / 32, b_count = shape.depth * 8 / 32;
  const int c_count = shape.rows * 8 / 32;
  for (int lane = 0; lane < 32; ++lane) {
    const Fragments& own = lanes[static_cast<size_t>(lane)];
    for (int k = 0; k < a_count; ++k) {
      put(a, element_of_a(shape, a_type, lane, k), value_of(part_of(own.a, a_type, k), a_type));
    }
    for (int k = 0; k < b_count; ++k) {
      put(b, element_of_b(b_type, lane, k), value_of(part_of(own.b, b_type, k), b_type));
    }
    for (int k = 0; k < c_count; ++k) {
      put(c, element_of_c(lane, k), value_of(part_of(own.c, c_type, k), c_type));
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    Fragments& own = lanes[static_cast<size_t>(lane)];
    const int per_register = std::max(1, 32 / bits_of(d_type));
    own.d.assign(static_cast<size_t>(c_count / per_register), 0);
    for (int k = 0; k < c_count; ++k) {
      const Element at = element_of_c(lane, k);
      const auto row = static_cast<size_t>(at.row), column = static_cast<size_t>(at.column);
      long double sum = c[row][column];
      for (size_t n = 0; n < b.size(); ++n) sum += a[row][n] * b[n][column];
      const uint64_t bits = bits_as(encode_sum(one, sum, d_type), d_type);
      own.d[static_cast<size_t>(k / per_register)] |= bits << (k % per_register * bits_of(d_type));
    }
  }
  return true;
}

}  // namespace mc::ptx
