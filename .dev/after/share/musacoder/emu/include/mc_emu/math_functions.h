// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_MATH_FUNCTIONS_H_
#define MC_EMU_MATH_FUNCTIONS_H_

// CUDA's functions of real numbers that are not in <cmath>.  Each has the form of double, the form
// of float with an f behind its name, and an overload for float under the plain name.  See math.h.

#include <math.h>

#include <cmath>

#include "mc_emu/math_bits.h"

namespace mc_emu {

constexpr double kPi = 3.14159265358979323846;
constexpr double kSqrt2 = 1.41421356237309504880;
constexpr double kSqrtPi = 1.77245385090551602730;

// sin(pi x) for turn 0, cos(pi x) for turn 1: exact at multiples of one half.
inline double sin_of_pi(double x, int turn) {
  if (!std::isfinite(x)) return std::nan("");
  const double reduced = std::fmod(x, 2.0);
  const double halves = std::nearbyint(2.0 * reduced);
  const double rest = kPi * (reduced - 0.5 * halves);
  // Zeros: a sine has the sign of its argument, a cosine is positive.
  if (rest == 0 && (static_cast<int>(halves) + turn) % 2 == 0) {
    return turn == 0 ? std::copysign(0.0, x) : 0.0;
  }
  switch ((static_cast<int>(halves) + turn) & 3) {
    case 0:
      return std::sin(rest);
    case 1:
      return std::cos(rest);
    case 2:
      return -std::sin(rest);
    default:
      return -std::cos(rest);
  }
}

// exp(x^2) erfc(x): beyond 3 by the continued fraction of erfc, which needs no huge exponential.
inline double scaled_erfc(double x) {
  if (x < 3.0) return std::exp(x * x) * std::erfc(x);
  double tail = x;
  for (int k = 60; k > 0; --k) tail = x + 0.5 * k / tail;
  return 1.0 / (kSqrtPi * tail);
}

// The x with erfc(x) = y, by Newton's method on log(erfc), which is close to a parabola.
inline double erfc_inverse(double y) {
  if (!(y >= 0.0 && y <= 2.0)) return std::nan("");
  if (y == 0.0 || y == 2.0) return y == 0.0 ? HUGE_VAL : -HUGE_VAL;
  if (y > 1.0) return -erfc_inverse(2.0 - y);
  double x = y > 0.5 ? (1.0 - y) * kSqrtPi / 2 : std::sqrt(-std::log(y));
  for (int step = 0; step < 60; ++step) {
    const double ratio = kSqrtPi / 2 * scaled_erfc(x);  // erfc(x) / -erfc'(x)
    const double move = ratio * (std::log(std::erfc(x)) - std::log(y));
    x += move;
    if (std::fabs(move) <= 1e-16 * std::fabs(x)) break;
  }
  return x;
}

// The x with erf(x) = y.
inline double erf_inverse(double y) {
  if (std::fabs(y) > 0.5) return y < 0 ? -erfc_inverse(1.0 + y) : erfc_inverse(1.0 - y);
  double x = y * kSqrtPi / 2;
  for (int step = 0; step < 20; ++step) {
    x -= (std::erf(x) - y) * (kSqrtPi / 2) * std::exp(x * x);
  }
  return x;
}

// The modified Bessel function I of order 0 or 1 for x >= 0: the power series, or for large x the
// asymptotic one.  (std::cyl_bessel_i throws for large arguments.)
inline double bessel_i(int order, double x) {
  double term = 1.0, sum = 1.0;
  if (std::isinf(x)) return x;
  if (x < 25.0) {
    for (int k = 1; k < 200 && term > 1e-18 * sum; ++k) {
      term *= x * x / (4.0 * k * (k + order));
      sum += term;
    }
    return order == 0 ? sum : sum * x / 2;
  }
  const double four_square = 4.0 * order * order;
  for (int k = 1; k < 30 && std::fabs(term) > 1e-18; ++k) {
    term *= ((2.0 * k - 1) * (2.0 * k - 1) - four_square) / (8.0 * k * x);
    sum += term;
  }
  return std::exp(x / 2) / std::sqrt(2 * kPi * x) * sum * std::exp(x / 2);
}

}  // namespace mc_emu

// name(double), namef(float), name(float) from one expression over a double x.
#define MC_REAL_FUNCTION(name, expression) \
  MC_REAL_OF_DOUBLE(name, expression)      \
  inline float name##f(float a) {          \
    const double x = a;                    \
    return static_cast<float>(expression); \
  }                                        \
  inline float name(float a) { return name##f(a); }
#define MC_REAL_OF_DOUBLE(name, expression) \
  inline double name(double x) { return expression; }

// Newer C libraries have some of them; their overload for float is missing either way.
#if !defined(__GLIBC__) || !__GLIBC_PREREQ(2, 42)
MC_REAL_FUNCTION(rsqrt, 1.0 / std::sqrt(x))
#else
inline float rsqrt(float x) { return rsqrtf(x); }
#endif
#if !defined(__GLIBC__) || !__GLIBC_PREREQ(2, 41)
MC_REAL_FUNCTION(sinpi, ::mc_emu::sin_of_pi(x, 0))
MC_REAL_FUNCTION(cospi, ::mc_emu::sin_of_pi(x, 1))
#else
inline float sinpi(float x) { return sinpif(x); }
inline float cospi(float x) { return cospif(x); }
#endif
MC_REAL_FUNCTION(rcbrt, 1.0 / std::cbrt(x))
MC_REAL_FUNCTION(erfcx, ::mc_emu::scaled_erfc(x))
MC_REAL_FUNCTION(erfinv, ::mc_emu::erf_inverse(x))
MC_REAL_FUNCTION(erfcinv, ::mc_emu::erfc_inverse(x))
MC_REAL_FUNCTION(normcdf, 0.5 * std::erfc(-x / ::mc_emu::kSqrt2))
MC_REAL_FUNCTION(normcdfinv, 0.0 - ::mc_emu::kSqrt2 * ::mc_emu::erfc_inverse(2.0 * x))
MC_REAL_FUNCTION(cyl_bessel_i0, ::mc_emu::bessel_i(0, std::fabs(x)))
MC_REAL_FUNCTION(cyl_bessel_i1, std::copysign(::mc_emu::bessel_i(1, std::fabs(x)), x))
#undef MC_REAL_FUNCTION
#undef MC_REAL_OF_DOUBLE

inline float exp10(float x) { return ::exp10f(x); }

inline void sincospi(double x, double* sine, double* cosine) {
  *sine = sinpi(x);
  *cosine = cospi(x);
}
inline void sincospif(float x, float* sine, float* cosine) {
  *sine = sinpif(x);
  *cosine = cospif(x);
}
inline void sincos(float x, float* sine, float* cosine) { ::sincosf(x, sine, cosine); }

inline double fdivide(double x, double y) { return x / y; }
inline float fdividef(float x, float y) { return x / y; }
inline float fdivide(float x, float y) { return x / y; }

inline double norm3d(double a, double b, double c) { return std::hypot(std::hypot(a, b), c); }
inline float norm3df(float a, float b, float c) { return static_cast<float>(norm3d(a, b, c)); }
inline double norm4d(double a, double b, double c, double d) {
  return std::hypot(std::hypot(a, b), std::hypot(c, d));
}
inline float norm4df(float a, float b, float c, float d) {
  return static_cast<float>(norm4d(a, b, c, d));
}
inline double rnorm3d(double a, double b, double c) { return 1.0 / norm3d(a, b, c); }
inline float rnorm3df(float a, float b, float c) {
  return static_cast<float>(1.0 / norm3d(a, b, c));
}
inline double rnorm4d(double a, double b, double c, double d) { return 1.0 / norm4d(a, b, c, d); }
inline float rnorm4df(float a, float b, float c, float d) {
  return static_cast<float>(1.0 / norm4d(a, b, c, d));
}
inline double rhypot(double a, double b) { return 1.0 / std::hypot(a, b); }
inline float rhypotf(float a, float b) {
  return static_cast<float>(1.0 / std::hypot(static_cast<double>(a), b));
}
inline double norm(int count, const double* p) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum = std::hypot(sum, p[i]);
  return sum;
}
inline float normf(int count, const float* p) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum = std::hypot(sum, static_cast<double>(p[i]));
  return static_cast<float>(sum);
}
inline double rnorm(int count, const double* p) { return 1.0 / norm(count, p); }
inline float rnormf(int count, const float* p) { return 1.0f / normf(count, p); }

// The C library declares (and does not export) most names of the fast functions, with C linkage.
extern "C" {
MC_EMU_INLINE float __expf(float x) noexcept { return ::expf(x); }
MC_EMU_INLINE float __exp10f(float x) noexcept { return ::exp10f(x); }
MC_EMU_INLINE float __logf(float x) noexcept { return ::logf(x); }
MC_EMU_INLINE float __log2f(float x) noexcept { return ::log2f(x); }
MC_EMU_INLINE float __log10f(float x) noexcept { return ::log10f(x); }
MC_EMU_INLINE float __sinf(float x) noexcept { return ::sinf(x); }
MC_EMU_INLINE float __cosf(float x) noexcept { return ::cosf(x); }
MC_EMU_INLINE float __tanf(float x) noexcept { return ::tanf(x); }
MC_EMU_INLINE float __tanhf(float x) noexcept { return ::tanhf(x); }
MC_EMU_INLINE void __sincosf(float x, float* sine, float* cosine) noexcept {
  ::sincosf(x, sine, cosine);
}
// The formula of the hardware: a negative base gives NaN, whatever the exponent.
MC_EMU_INLINE float __powf(float x, float y) noexcept { return ::exp2f(y * ::log2f(x)); }
}

MC_EMU_INLINE float __fdividef(float x, float y) { return x / y; }
MC_EMU_INLINE float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }

#endif  // MC_EMU_MATH_FUNCTIONS_H_
