// SPDX-License-Identifier: Apache-2.0
#include "ptx/testing/reference_fp8.h"

#include <cmath>

#include "ptx/testing/reference_values.h"

namespace mc::ptx {
namespace {

// The operand; .relu replaces values not above 0 by 0.
long double operand_of(const Instruction& one, uint64_t bits, Type type) {
  const long double value = float_as(bits, type);
  return one.has("relu") && !std::isnan(value) && !(value > 0) ? 0 : value;
}

Type element_of(Type pair) { return pair == Type::kE4m3x2 ? Type::kE4m3 : Type::kE5m2; }

}  // namespace

uint64_t nearest_fp8(long double value, Type type) {
  if (std::isnan(value)) return 0x7F;
  const long double size = std::fabs(value);
  uint64_t best = 0;
  for (uint64_t code = 1; code < 0x7F; ++code) {
    const long double other = float_as(code, type);
    if (!std::isfinite(other)) break;
    // Beyond the largest number, differences would be rounded.
    const long double gain = (size - float_as(best, type)) - (other - size);
    if (size >= other || gain > 0 || (gain == 0 && code % 2 == 0)) best = code;
  }
  return best | (std::signbit(value) ? 0x80 : 0);
}

uint64_t convert_fp8(const Instruction& one, std::span<const uint64_t> sources) {
  const Type to = one.types[0], from = one.types[1];
  auto narrow = [&](uint64_t bits, Type wide) {
    return nearest_fp8(operand_of(one, bits, wide), element_of(to));
  };
  auto widen = [&](uint64_t bits) {
    const Type element = element_of(from);
    return encode(operand_of(one, bits_as(bits, element), element), Type::kF16,
                  RoundingMode::kNearest);
  };
  if (to == Type::kF16x2) return widen(sources[0] >> 8) << 16 | widen(sources[0]);
  if (from == Type::kF32) return narrow(sources[0], from) << 8 | narrow(sources[1], from);
  return narrow(bits_as(sources[0] >> 16, Type::kF16), Type::kF16) << 8 |
         narrow(bits_as(sources[0], Type::kF16), Type::kF16);
}

}  // namespace mc::ptx
