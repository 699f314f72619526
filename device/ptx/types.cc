// SPDX-License-Identifier: Apache-2.0
#include "ptx/types.h"

namespace mc::ptx {
namespace {

struct Row {
  Type type;
  std::string_view name;
  int bytes;
  bool is_signed;
  bool is_integer;
};

// The rows are in the order of the enumerators.
constexpr Row kRows[] = {
    {Type::kNone, "", 0, false, false},     {Type::kPred, "pred", 0, false, false},
    {Type::kB1, "b1", 0, false, true},      {Type::kU4, "u4", 0, false, true},
    {Type::kS4, "s4", 0, true, true},       {Type::kB8, "b8", 1, false, true},
    {Type::kU8, "u8", 1, false, true},      {Type::kS8, "s8", 1, true, true},
    {Type::kB16, "b16", 2, false, true},    {Type::kU16, "u16", 2, false, true},
    {Type::kS16, "s16", 2, true, true},     {Type::kB32, "b32", 4, false, true},
    {Type::kU32, "u32", 4, false, true},    {Type::kS32, "s32", 4, true, true},
    {Type::kB64, "b64", 8, false, true},    {Type::kU64, "u64", 8, false, true},
    {Type::kS64, "s64", 8, true, true},     {Type::kB128, "b128", 16, false, true},
    {Type::kF16, "f16", 2, false, false},   {Type::kF16x2, "f16x2", 4, false, false},
    {Type::kBf16, "bf16", 2, false, false}, {Type::kBf16x2, "bf16x2", 4, false, false},
    {Type::kE4m3, "e4m3", 0, false, false}, {Type::kE4m3x2, "e4m3x2", 0, false, false},
    {Type::kE5m2, "e5m2", 0, false, false}, {Type::kE5m2x2, "e5m2x2", 0, false, false},
    {Type::kTf32, "tf32", 4, false, false}, {Type::kF32, "f32", 4, false, false},
    {Type::kF64, "f64", 8, false, false},
};

const Row& row_of(Type type) { return kRows[static_cast<int>(type)]; }

}  // namespace

Type type_of(std::string_view name) {
  if (name.empty()) return Type::kNone;
  for (const Row& row : kRows) {
    if (row.name == name) return row.type;
  }
  return Type::kNone;
}

std::string_view name_of(Type type) { return row_of(type).name; }
int bytes_of(Type type) { return row_of(type).bytes; }
bool is_signed(Type type) { return row_of(type).is_signed; }
bool is_integer(Type type) { return row_of(type).is_integer; }
bool is_fp8(Type type) { return type == Type::kE4m3 || type == Type::kE5m2; }
bool is_fp8_pair(Type type) { return type == Type::kE4m3x2 || type == Type::kE5m2x2; }

}  // namespace mc::ptx
