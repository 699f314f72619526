// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_MATH_BITS_H_
#define MC_EMU_MATH_BITS_H_

// Bits of numbers: reinterpretation, directed rounding and saturating conversion, for the CUDA
// functions of math.h and of the 16-bit types.  Nothing here is a CUDA name.  C++17, host code
// only, independent of the rounding mode of the processor, which stays "to nearest" at all times.
//
// Directed rounding works on an exact value that is written as (nearest, error): `nearest` is the
// value rounded to nearest and `error` has the sign of what was lost.

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

// Kernels are compiled with little optimisation, and a call that stays a call costs more than the
// work of most functions below.
#define MC_EMU_INLINE [[gnu::always_inline]] inline

namespace mc_emu {

enum class Rounding { kNearest, kZero, kUp, kDown };

template <class To, class From>
MC_EMU_INLINE constexpr To bits_as(From value) {
  static_assert(sizeof(To) == sizeof(From), "bits_as changes no size");
  return __builtin_bit_cast(To, value);
}

// The neighbour of a finite value towards +infinity or -infinity.
template <class Real>
MC_EMU_INLINE Real next_up(Real x) {
  return std::nextafter(x, std::numeric_limits<Real>::infinity());
}
template <class Real>
MC_EMU_INLINE Real next_down(Real x) {
  return std::nextafter(x, -std::numeric_limits<Real>::infinity());
}

// Turns a value rounded to nearest into one rounded as `mode` asks.  `error` is exact - nearest, or
// anything of the same sign.  A nearest of infinity that came from a finite value is pulled back
// where the mode does not round away from zero.
template <class Real, class Error>
MC_EMU_INLINE Real directed(Real nearest, Error error, Rounding mode) {
  if (mode == Rounding::kNearest || !(error > 0 || error < 0)) return nearest;
  const bool toward_zero_is_up = std::signbit(nearest);
  const bool up = mode == Rounding::kUp || (mode == Rounding::kZero && toward_zero_is_up);
  if (up) return error > 0 ? next_up(nearest) : nearest;
  return error < 0 ? next_down(nearest) : nearest;
}

// Rounds a double, or a 64-bit integer, to a float in the mode asked for.
MC_EMU_INLINE float float_of(double x, Rounding mode) {
  const float nearest = static_cast<float>(x);
  if (std::isinf(nearest) && !std::isinf(x)) {
    return directed(nearest, nearest > 0 ? -1.0 : 1.0, mode);
  }
  return directed(nearest, x - static_cast<double>(nearest), mode);
}

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UInt128;

// The difference between an integer and its conversion to a floating-point type, exactly.
template <class Real, class Int>
MC_EMU_INLINE Int128 integer_error(Int x, Real nearest) {
  return static_cast<Int128>(x) - static_cast<Int128>(nearest);
}

template <class Real, class Int>
MC_EMU_INLINE Real real_of_integer(Int x, Rounding mode) {
  const Real nearest = static_cast<Real>(x);
  if (mode == Rounding::kNearest) return nearest;
  const Int128 error = integer_error(x, nearest);
  return directed(nearest, static_cast<int>((error > 0) - (error < 0)), mode);
}

// Rounds to "odd": an inexact result gets an odd last bit.  A value so rounded can be rounded once
// more, to a format at least two bits shorter, with the result of a single rounding.
MC_EMU_INLINE float float_odd(double x) {
  const float toward_zero = float_of(x, Rounding::kZero);
  if (static_cast<double>(toward_zero) == x || x != x) return toward_zero;
  return bits_as<float>(bits_as<std::uint32_t>(toward_zero) | 1u);
}

// The sum a + b rounded to odd (Knuth's two-sum gives the error exactly).
MC_EMU_INLINE double sum_odd(double a, double b) {
  const double sum = a + b;
  if (!std::isfinite(sum)) return sum;
  const double b_part = sum - a;
  const double error = (a - (sum - b_part)) + (b - b_part);
  const double toward_zero = directed(sum, error, Rounding::kZero);
  return error == 0 ? sum : bits_as<double>(bits_as<std::uint64_t>(toward_zero) | 1u);
}

template <class Real>
MC_EMU_INLINE Real round_to_integral(Real x, Rounding mode) {
  switch (mode) {
    case Rounding::kNearest:
      return std::nearbyint(x);
    case Rounding::kZero:
      return std::trunc(x);
    case Rounding::kUp:
      return std::ceil(x);
    case Rounding::kDown:
      return std::floor(x);
  }
  return x;
}

// A number as an integer, in CUDA's way: what does not fit becomes the nearest integer that does,
// and NaN becomes 0, or the bit pattern 100...0 where either side has 64 bits.
template <class Int, class Real>
MC_EMU_INLINE Int integer_of(Real x, Rounding mode) {
  if (x != x) {
    const bool wide = sizeof(Real) == 8 || sizeof(Int) == 8;
    return wide ? static_cast<Int>(static_cast<Int>(1) << (8 * sizeof(Int) - 1)) : Int{0};
  }
  const Real rounded = round_to_integral(x, mode);
  // 2^digits is exact in every floating-point type; max() is not.
  const Real limit = std::ldexp(Real{1}, std::numeric_limits<Int>::digits);
  if (rounded >= limit) return std::numeric_limits<Int>::max();
  if (rounded <= (std::is_signed<Int>::value ? -limit : Real{0})) {
    return std::numeric_limits<Int>::min();
  }
  return static_cast<Int>(rounded);
}

}  // namespace mc_emu

#endif  // MC_EMU_MATH_BITS_H_
