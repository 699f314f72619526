// SPDX-License-Identifier: Apache-2.0
//
// Numbers of 8 bits, for handlers: e4m3, which has no infinity and one NaN of each sign, and e5m2,
// which is the upper half of an f16.
#ifndef MC_PTX_FP8_H_
#define MC_PTX_FP8_H_

#include "ptx/halves.h"
#include "ptx/lanes.h"

namespace mc::ptx::MC_PTX_VARIANT {

struct E4m3 {
  static constexpr int kMantissa = 3, kBias = 7;
  static constexpr float kMost = 448, kLeastNormal = 0x1p-6F;
  uint8_t bits;
};
struct E5m2 {
  static constexpr int kMantissa = 2, kBias = 15;
  static constexpr float kMost = 57344, kLeastNormal = 0x1p-14F;
  uint8_t bits;
};

// A half with the same fields: that of an e4m3 is smaller by kScale, since its bias is.
template <class T>
MC_INLINE uint16_t half_with_fields(T x) {
  constexpr int kShift = 10 - T::kMantissa;
  return static_cast<uint16_t>((x.bits & 0x80) << 8 | (x.bits & 0x7F) << kShift);
}
template <class T>
constexpr float kScale = static_cast<float>(1 << (15 - T::kBias));

// Exact. The loops are short, so that the compiler vectorises them.
template <class T>
MC_INLINE void widen_fp8_row(const T* from, float* to, int count) {
  for (int begin = 0; begin < count; begin += 32) {
    alignas(32) F16 halves[32];
    const T* part = from + begin;
    for (int k = 0; k < 32; ++k) halves[k].bits = half_with_fields(part[k]);
    widen_row(halves, to + begin, 32);
    if constexpr (std::is_same_v<T, E4m3>) {
      for (int k = 0; k < 32; ++k) {
        const bool is_nan = (part[k].bits & 0x7F) == 0x7F;
        to[begin + k] = is_nan ? __builtin_nanf("") : to[begin + k] * kScale<T>;
      }
    }
  }
}

// Rounds to nearest even; a value beyond the largest finite number becomes that number.
template <class T>
MC_INLINE T narrow_fp8(float x) {
  constexpr int kDropped = 23 - T::kMantissa;
  constexpr uint32_t kHalf = uint32_t{1} << (kDropped - 1);
  constexpr uint32_t kBias = uint32_t{127 - T::kBias} << T::kMantissa;
  // Its neighbours differ as the subnormal numbers do, so that adding it rounds to one of them.
  constexpr float kRounder = T::kLeastNormal * static_cast<float>(1 << kDropped);
  const uint32_t bits = __builtin_bit_cast(uint32_t, x), all = bits & 0x7FFFFFFF;
  const uint32_t most = __builtin_bit_cast(uint32_t, T::kMost), size = all < most ? all : most;
  const uint32_t normal = ((size + kHalf - 1 + (size >> kDropped & 1)) >> kDropped) - kBias;
  const float sum = __builtin_bit_cast(float, size) + kRounder;
  const uint32_t subnormal = __builtin_bit_cast(uint32_t, sum) & 0xFF;
  const bool is_normal = size >= __builtin_bit_cast(uint32_t, T::kLeastNormal);
  const uint32_t code = (is_normal ? normal : subnormal) | (bits >> 24 & 0x80);
  return {static_cast<uint8_t>(all > 0x7F800000 ? 0x7F : code)};
}

}  // namespace mc::ptx::MC_PTX_VARIANT

#endif  // MC_PTX_FP8_H_
