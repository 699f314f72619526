// SPDX-License-Identifier: Apache-2.0
//
// Numbers of 16 bits, for handlers: f16 and bf16, and rows of them as rows of float.
#ifndef MC_PTX_HALVES_H_
#define MC_PTX_HALVES_H_

#include "ptx/lanes.h"

namespace mc::ptx::MC_PTX_VARIANT {

struct F16 {
  uint16_t bits;
};
struct Bf16 {
  uint16_t bits;
};
template <class T>
constexpr bool kIsHalf = std::is_same_v<T, F16> || std::is_same_v<T, Bf16>;

// Exact.
MC_INLINE float widen(Bf16 x) { return __builtin_bit_cast(float, uint32_t{x.bits} << 16); }

MC_INLINE float widen(F16 x) {
#ifdef __F16C__
  return _cvtsh_ss(x.bits);
#else
  // The exponent of a normal number moves by 112; a subnormal one is a small integer.
  const uint32_t sign = uint32_t{x.bits & 0x8000U} << 16, rest = x.bits & 0x7FFFU;
  const float small = static_cast<float>(rest) * 0x1p-24F;
  const uint32_t normal = rest >= 0x7C00 ? 0x7F800000 | rest << 13 : (rest << 13) + (112U << 23);
  const uint32_t bits = rest < 0x400 ? __builtin_bit_cast(uint32_t, small) : normal;
  return __builtin_bit_cast(float, bits | sign);
#endif
}

// The bits of a float without its low ones, rounded. GPUs make one NaN of all.
MC_INLINE Bf16 narrow_bf16(float x, Rounding rounding) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x), size = bits & 0x7FFFFFFF;
  if (size > 0x7F800000) return {0x7FFF};
  const bool is_negative = bits >> 31 != 0;
  uint32_t extra = 0;
  if (rounding == Rounding::kNearest) extra = 0x7FFF + (bits >> 16 & 1);
  if (rounding == Rounding::kUp && !is_negative) extra = 0xFFFF;
  if (rounding == Rounding::kDown && is_negative) extra = 0xFFFF;
  return {static_cast<uint16_t>((bits + extra) >> 16)};
}

MC_INLINE F16 narrow_f16(float x, Rounding rounding) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x), size = bits & 0x7FFFFFFF;
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  if (size > 0x7F800000) return {0x7FFF};
  const bool away = sign ? rounding == Rounding::kDown : rounding == Rounding::kUp;
  const bool nearest = rounding == Rounding::kNearest;
  if (size >= 0x47800000) {  // 65,536 and more.
    const bool is_infinite = size == 0x7F800000 || nearest || away;
    return {static_cast<uint16_t>(sign | (is_infinite ? 0x7C00 : 0x7BFF))};
  }
  // The number is kept * 2^-24 for subnormal results, where more bits fall off.
  const int exponent = static_cast<int>(size >> 23);
  const int drop = exponent >= 113 ? 13 : exponent < 101 ? 25 : 126 - exponent;
  const uint32_t full = exponent >= 113 ? size - (112U << 23)
                        : exponent == 0 ? size
                                        : ((size & 0x7FFFFF) | 0x800000);
  uint32_t kept = drop >= 25 && exponent < 101 ? 0 : full >> drop;
  const uint32_t lost = exponent < 101 ? (size != 0 ? 1 : 0) : full & ((1U << drop) - 1);
  const uint32_t half = exponent < 101 ? 2 : 1U << (drop - 1);
  const bool up = nearest ? lost > half || (lost == half && (kept & 1)) : away && lost != 0;
  kept += up ? 1 : 0;
  return {static_cast<uint16_t>(sign | kept)};
}

template <class T>
MC_INLINE T narrow(float x, Rounding rounding = Rounding::kNearest) {
  if constexpr (std::is_same_v<T, Bf16>) return narrow_bf16(x, rounding);
#ifdef __F16C__
  if constexpr (std::is_same_v<T, F16>) {
    if (rounding == Rounding::kNearest && x == x) return {static_cast<uint16_t>(_cvtss_sh(x, 0))};
  }
#endif
  if constexpr (std::is_same_v<T, F16>) return narrow_f16(x, rounding);
}

// The nearest float towards zero, with its last bit set if that is not exact: to round it once
// more to fewer bits gives what one rounding would.
MC_INLINE float to_odd(double x) {
  const float near = static_cast<float>(x);
  const bool is_exact = static_cast<double>(near) == x || x - x != 0;
  const bool is_away = __builtin_fabs(static_cast<double>(near)) > __builtin_fabs(x);
  const uint32_t bits = __builtin_bit_cast(uint32_t, near) - (is_away ? 1 : 0);
  return is_exact ? near : __builtin_bit_cast(float, bits | 1);
}

// The same for a sum, given that of the nearest mode and what it lost.
MC_INLINE float sum_to_odd(double a, double b) {
  const double sum = a + b, part = sum - a;
  const double lost = (a - (sum - part)) + (b - part);
  const bool is_exact = lost == 0 || sum - sum != 0;
  const bool is_away = (sum < 0) != (lost < 0);
  const uint64_t bits = __builtin_bit_cast(uint64_t, sum) - (is_away ? 1 : 0);
  return to_odd(is_exact ? sum : __builtin_bit_cast(double, bits | 1));
}

// A subnormal number is a zero of its sign.
MC_INLINE uint16_t flush_half(uint16_t bits) {
  return static_cast<uint16_t>(bits & 0x7C00 ? bits : bits & 0x8000);
}

// Rows of a multiple of eight.
template <class T>
MC_INLINE void widen_row(const T* from, float* to, int count) {
#ifdef __F16C__
  if constexpr (std::is_same_v<T, F16>) {
    for (int k = 0; k < count; k += 8) {
      const __m128i eight = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + k));
      _mm256_storeu_ps(to + k, _mm256_cvtph_ps(eight));
    }
    return;
  }
#endif
  for (int k = 0; k < count; ++k) to[k] = widen(from[k]);
}

template <class T>
MC_INLINE void narrow_row(const float* from, T* to, int count) {
#ifdef __F16C__
  if constexpr (std::is_same_v<T, F16>) {
    for (int k = 0; k < count; k += 8) {
      const __m256 eight = _mm256_loadu_ps(from + k);
      const __m128i halves = _mm256_cvtps_ph(eight, 0);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + k), halves);
    }
    for (int k = 0; k < count; ++k) to[k].bits = from[k] == from[k] ? to[k].bits : 0x7FFF;
    return;
  }
#endif
  for (int k = 0; k < count; ++k) to[k] = narrow<T>(from[k]);
}

}  // namespace mc::ptx::MC_PTX_VARIANT

#endif  // MC_PTX_HALVES_H_
