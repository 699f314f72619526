// SPDX-License-Identifier: Apache-2.0
//
// Types of PTX: how a suffix of an instruction (`.f32`) or of a declaration reads its bits.
#ifndef MC_PTX_TYPES_H_
#define MC_PTX_TYPES_H_

#include <cstdint>
#include <string_view>

namespace mc::ptx {

enum class Type : uint8_t {
  kNone,
  kPred,
  kB1,
  kU4,
  kS4,
  kB8,
  kU8,
  kS8,
  kB16,
  kU16,
  kS16,
  kB32,
  kU32,
  kS32,
  kB64,
  kU64,
  kS64,
  kB128,
  kF16,
  kF16x2,
  kBf16,
  kBf16x2,
  kE4m3,
  kE4m3x2,
  kE5m2,
  kE5m2x2,
  kTf32,
  kF32,
  kF64,
};

// The type of a name without its dot, kNone if no type has that name.
Type type_of(std::string_view name);
std::string_view name_of(Type type);

// Bytes of a value in memory. Predicates, kNone, parts of a byte and the 8-bit floats, which only
// cvt and mma name, have 0.
int bytes_of(Type type);
bool is_signed(Type type);
// Integers include bit types such as kB32.
bool is_integer(Type type);
// True for 8-bit floats, single (as in mma) or in pairs (as in cvt).
bool is_fp8(Type type);
bool is_fp8_pair(Type type);

}  // namespace mc::ptx

#endif  // MC_PTX_TYPES_H_
