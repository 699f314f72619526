// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_HALF_BITS_H_
#define MC_EMU_HALF_BITS_H_

// The bits of IEEE binary16 ("half") and bfloat16: conversion from and to float, with the rounding
// modes that CUDA has.  Plain integer work, so that it needs no F16C and may be constexpr.
//
// A format is a tag type; encode<Fp16>(1.0f, mode) == 0x3C00, decode<Fp16>(0x3C00) == 1.0f.
// A NaN of any payload is encoded as 0x7FFF, as the hardware does.

#include "mc_emu/math_bits.h"

namespace mc_emu {

struct Fp16 {
  static constexpr int kMantissaBits = 10;
  static constexpr int kExponentBias = 15;
  static constexpr std::uint16_t kInfinity = 0x7C00;
};

struct Bf16 {
  static constexpr int kMantissaBits = 7;
  static constexpr int kExponentBias = 127;
  static constexpr std::uint16_t kInfinity = 0x7F80;
};

template <class Format>
MC_EMU_INLINE constexpr float decode(std::uint16_t bits);

template <>
MC_EMU_INLINE constexpr float decode<Bf16>(std::uint16_t bits) {
  return bits_as<float>(static_cast<std::uint32_t>(bits) << 16);
}

template <>
MC_EMU_INLINE constexpr float decode<Fp16>(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t magnitude = bits & 0x7FFFu;
  std::uint32_t out = 0;
  if (magnitude >= 0x7C00u) {
    out = (magnitude << 13) + ((255u - 31u) << 23);
  } else if (magnitude >= 0x0400u) {
    out = (magnitude << 13) + ((127u - 15u) << 23);
  } else {
    out = bits_as<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-24f);
  }
  return bits_as<float>(out | sign);
}

// Rounds the magnitude of a finite float (its bits without the sign) toward zero, and says through
// `rest` how much was cut off: the cut bits, and `unit`, what one unit in the last place weighs.
struct Truncated {
  std::uint32_t bits;
  std::uint64_t rest;
  std::uint64_t unit;
};

template <class Format>
MC_EMU_INLINE constexpr Truncated truncate_to(std::uint32_t magnitude) {
  constexpr int kDrop = 23 - Format::kMantissaBits;
  constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(127 - Format::kExponentBias);
  const std::uint32_t exponent = magnitude >> 23;
  if (exponent > kRebias || kRebias == 0) {
    const std::uint32_t rest = magnitude & ((1u << kDrop) - 1u);
    return {(magnitude >> kDrop) - (kRebias << Format::kMantissaBits), rest, 1u << kDrop};
  }
  // Below the smallest normal number of the format: the leading one becomes explicit.
  const std::uint32_t significand =
      exponent == 0 ? magnitude << 1 : (magnitude & 0x7FFFFFu) | 0x800000u;
  const std::uint32_t shift = kDrop + kRebias + 1u - exponent;
  const std::uint64_t unit = std::uint64_t{1} << (shift < 40u ? shift : 40u);
  return {shift < 32u ? significand >> shift : 0u, significand & (unit - 1u), unit};
}

MC_EMU_INLINE constexpr bool rounds_away(const Truncated& t, bool negative, Rounding mode) {
  switch (mode) {
    case Rounding::kNearest:
      return 2 * t.rest > t.unit || (2 * t.rest == t.unit && (t.bits & 1u) != 0);
    case Rounding::kZero:
      return false;
    case Rounding::kUp:
      return t.rest != 0 && !negative;
    case Rounding::kDown:
      return t.rest != 0 && negative;
  }
  return false;
}

template <class Format>
MC_EMU_INLINE constexpr std::uint16_t encode(float value, Rounding mode = Rounding::kNearest) {
  const std::uint32_t bits = bits_as<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  if (magnitude > 0x7F800000u) return 0x7FFF;
  if (magnitude == 0x7F800000u) return static_cast<std::uint16_t>(sign | Format::kInfinity);
  const Truncated t = truncate_to<Format>(magnitude);
  const std::uint32_t out = t.bits + (rounds_away(t, sign != 0, mode) ? 1u : 0u);
  if (out < Format::kInfinity) return static_cast<std::uint16_t>(sign | out);
  // Too large: infinity where the mode rounds away from zero, else the largest finite number.
  const bool away =
      mode == Rounding::kNearest || mode == (sign != 0 ? Rounding::kDown : Rounding::kUp);
  return static_cast<std::uint16_t>(sign | (Format::kInfinity - (away ? 0u : 1u)));
}

// From double, and from integers of any size, with a single rounding.
template <class Format>
MC_EMU_INLINE std::uint16_t encode(double value, Rounding mode = Rounding::kNearest) {
  return encode<Format>(float_odd(value), mode);
}

template <class Format, class Int,
          typename std::enable_if<std::is_integral<Int>::value, int>::type = 0>
MC_EMU_INLINE std::uint16_t encode(Int value, Rounding mode = Rounding::kNearest) {
  const double toward_zero = real_of_integer<double>(value, Rounding::kZero);
  const bool exact = integer_error(value, toward_zero) == 0;
  const std::uint64_t odd = bits_as<std::uint64_t>(toward_zero) | (exact ? 0u : 1u);
  return encode<Format>(bits_as<double>(odd), mode);
}

// The sum a * b + c with a single rounding: the product of two 16-bit numbers is exact in double.
template <class Format>
MC_EMU_INLINE std::uint16_t encode_fma(float a, float b, float c) {
  return encode<Format>(sum_odd(static_cast<double>(a) * b, c));
}

}  // namespace mc_emu

#endif  // MC_EMU_HALF_BITS_H_
