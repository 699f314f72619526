// SPDX-License-Identifier: Apache-2.0
#include "ptx/operations.h"

namespace mc::ptx {

namespace avx2_32 {
extern const Variant kVariant;
}
namespace plain_32 {
extern const Variant kVariant;
}
namespace plain_128 {
extern const Variant kVariant;
}

namespace {

bool has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("x86-64-v3");
#else
  return false;
#endif
}

}  // namespace

const Variant* variant_of(int lanes, Isa isa) {
  if (lanes == 128) return &plain_128::kVariant;
  if (lanes != 32) return nullptr;
  return isa == Isa::kBest && has_avx2() ? &avx2_32::kVariant : &plain_32::kVariant;
}

}  // namespace mc::ptx
