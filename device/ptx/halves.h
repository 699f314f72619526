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

MC_INLINE float widen(F16 x) { return _cvtsh_ss(x.bits); }

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
  if (x != x) return {0x7FFF};
  const auto half = [](unsigned short bits) { return F16{bits}; };
  switch (rounding) {
    MC_ROW(Rounding::kZero, half(_cvtss_sh(x, _MM_FROUND_TO_ZERO)))
    MC_ROW(Rounding::kDown, half(_cvtss_sh(x, _MM_FROUND_TO_NEG_INF)))
    MC_ROW(Rounding::kUp, half(_cvtss_sh(x, _MM_FROUND_TO_POS_INF)))
    default:
      return half(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT));
  }
}

template <class T>
MC_INLINE T narrow(float x, Rounding rounding = Rounding::kNearest) {
  if constexpr (std::is_same_v<T, Bf16>) return narrow_bf16(x, rounding);
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

// The same for a sum, from the sum rounded to nearest and its rounding error.
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

// Implements .relu: values not above 0, including -0, become +0; a NaN stays a NaN.
template <class T>
MC_INLINE T rectified(T x) {
  return x > 0 || x != x ? x : T(0);
}

// Functions on rows whose length is a multiple of eight.
template <class T>
MC_INLINE void widen_row(const T* from, float* to, int count) {
  if constexpr (std::is_same_v<T, F16>) {
    for (int k = 0; k < count; k += 8) {
      const __m128i eight = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + k));
      _mm256_storeu_ps(to + k, _mm256_cvtph_ps(eight));
    }
    return;
  }
  for (int k = 0; k < count; ++k) to[k] = widen(from[k]);
}

template <class T>
MC_INLINE void narrow_row(const float* from, T* to, int count) {
  if constexpr (std::is_same_v<T, F16>) {
    for (int k = 0; k < count; k += 8) {
      const __m256 eight = _mm256_loadu_ps(from + k);
      const __m128i halves = _mm256_cvtps_ph(eight, 0);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + k), halves);
    }
    for (int k = 0; k < count; ++k) to[k].bits = from[k] == from[k] ? to[k].bits : 0x7FFF;
    return;
  }
  for (int k = 0; k < count; ++k) to[k] = narrow<T>(from[k]);
}

}  // namespace mc::ptx::MC_PTX_VARIANT

#endif  // MC_PTX_HALVES_H_
