// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_MATH_ROUNDING_H_
#define MC_EMU_MATH_ROUNDING_H_

// CUDA's arithmetic and conversions that name their rounding mode (_rn _rz _ru _rd), and the
// reinterpretation of bits.  See math.h.
//
// Theory: the processor rounds to nearest.  Each operation has an error-free companion (two-sum,
// the exact product in a wider type, the remainder of a quotient or a root), and its sign says in
// which direction to step by one unit.

#include <cmath>

#include "mc_emu/math_bits.h"

namespace mc_emu {

// An infinity that finite operands produced has an error towards zero; other cases of infinity and
// NaN have none.
template <class Real>
MC_EMU_INLINE Real overflow_error(Real result, bool finite_operands) {
  if (!std::isinf(result) || !finite_operands) return 0;
  return result > 0 ? Real{-1} : Real{1};
}

// Wide enough to hold the product of two doubles exactly, whatever their exponents.
__extension__ typedef __float128 Quad;

template <class Wide>
MC_EMU_INLINE int sign_of(Wide x) {
  return (x > 0) - (x < 0);
}

// Rounds `nearest` in the mode, given the exact value in a type that is wide enough.
template <class Real, class Wide>
MC_EMU_INLINE Real directed_to(Real nearest, Wide exact, Rounding mode) {
  return directed(nearest, sign_of(exact - static_cast<Wide>(nearest)), mode);
}

// The exact error of a sum of numbers, by two-sum.
template <class Wide>
MC_EMU_INLINE Wide sum_error(Wide a, Wide b) {
  const Wide sum = a + b;
  const Wide b_part = sum - a;
  return (a - (sum - b_part)) + (b - b_part);
}

MC_EMU_INLINE double add(double a, double b, Rounding mode) {
  const double sum = a + b;
  if (mode == Rounding::kNearest) return sum;
  if (!std::isfinite(sum)) {
    return directed(sum, overflow_error(sum, std::isfinite(a) && std::isfinite(b)), mode);
  }
  const bool both_plus_zero = a == 0 && b == 0 && !std::signbit(a) && !std::signbit(b);
  if (sum == 0 && mode == Rounding::kDown && !both_plus_zero) return -0.0;
  return directed(sum,
                  sign_of(sum_error(static_cast<Quad>(a), static_cast<Quad>(b)) +
                          (static_cast<Quad>(a) + b - sum)),
                  mode);
}
MC_EMU_INLINE float add(float a, float b, Rounding mode) {
  if (mode == Rounding::kNearest) return a + b;
  const double x = a, y = b;
  if (x + y == 0) return static_cast<float>(add(x, y, mode));
  return float_of(sum_odd(x, y), mode);
}

MC_EMU_INLINE float multiply(float a, float b, Rounding mode) {
  return mode == Rounding::kNearest ? a * b : float_of(static_cast<double>(a) * b, mode);
}
MC_EMU_INLINE double multiply(double a, double b, Rounding mode) {
  const double product = a * b;
  if (mode == Rounding::kNearest) return product;
  if (!std::isfinite(product)) {
    return directed(product, overflow_error(product, std::isfinite(a) && std::isfinite(b)), mode);
  }
  return directed_to(product, static_cast<Quad>(a) * b, mode);
}

// The sign of a - b * quotient; for a square root, b and quotient are both the root.
MC_EMU_INLINE int remainder_sign(float a, float b, float quotient) {
  return sign_of(static_cast<double>(a) - static_cast<double>(quotient) * b);
}
MC_EMU_INLINE int remainder_sign(double a, double b, double quotient) {
  return sign_of(static_cast<Quad>(a) - static_cast<Quad>(quotient) * b);
}

template <class Real>
MC_EMU_INLINE Real divide(Real a, Real b, Rounding mode) {
  const Real quotient = a / b;
  if (mode == Rounding::kNearest) return quotient;
  if (!std::isfinite(quotient)) {
    return directed(quotient, overflow_error(quotient, std::isfinite(a) && b != 0), mode);
  }
  const int sign = std::isinf(b) ? 0 : remainder_sign(a, b, quotient);
  return directed(quotient, std::signbit(b) ? -sign : sign, mode);
}

template <class Real>
MC_EMU_INLINE Real square_root(Real a, Rounding mode) {
  const Real root = std::sqrt(a);
  if (mode == Rounding::kNearest || !std::isfinite(root)) return root;
  return directed(root, remainder_sign(a, root, root), mode);
}

MC_EMU_INLINE float multiply_add(float a, float b, float c, Rounding mode) {
  const double product = static_cast<double>(a) * b;
  if (product + c == 0) return static_cast<float>(add(product, static_cast<double>(c), mode));
  return float_of(sum_odd(product, static_cast<double>(c)), mode);
}
MC_EMU_INLINE double multiply_add(double a, double b, double c, Rounding mode) {
  const double result = std::fma(a, b, c);
  if (mode == Rounding::kNearest) return result;
  if (!std::isfinite(result)) {
    const bool finite = std::isfinite(a) && std::isfinite(b) && std::isfinite(c);
    return directed(result, overflow_error(result, finite), mode);
  }
  const Quad product = static_cast<Quad>(a) * b, addend = c;
  if (product + addend == 0) return add(static_cast<double>(product), c, mode);
  const Quad rounding = (product + addend) - static_cast<Quad>(result);
  return directed(result, sign_of(rounding + sum_error(product, addend)), mode);
}

}  // namespace mc_emu

#define MC_EACH_MODE(X) X(rn, kNearest) X(rz, kZero) X(ru, kUp) X(rd, kDown)

#define MC_ARITHMETIC(suffix, mode)                                   \
  MC_EMU_INLINE float __fadd_##suffix(float a, float b) {             \
    return ::mc_emu::add(a, b, ::mc_emu::Rounding::mode);             \
  }                                                                   \
  MC_EMU_INLINE float __fsub_##suffix(float a, float b) {             \
    return ::mc_emu::add(a, -b, ::mc_emu::Rounding::mode);            \
  }                                                                   \
  MC_EMU_INLINE float __fmul_##suffix(float a, float b) {             \
    return ::mc_emu::multiply(a, b, ::mc_emu::Rounding::mode);        \
  }                                                                   \
  MC_EMU_INLINE float __fdiv_##suffix(float a, float b) {             \
    return ::mc_emu::divide(a, b, ::mc_emu::Rounding::mode);          \
  }                                                                   \
  MC_EMU_INLINE float __frcp_##suffix(float a) {                      \
    return ::mc_emu::divide(1.0f, a, ::mc_emu::Rounding::mode);       \
  }                                                                   \
  MC_EMU_INLINE float __fsqrt_##suffix(float a) {                     \
    return ::mc_emu::square_root(a, ::mc_emu::Rounding::mode);        \
  }                                                                   \
  MC_EMU_INLINE float __fmaf_##suffix(float a, float b, float c) {    \
    return ::mc_emu::multiply_add(a, b, c, ::mc_emu::Rounding::mode); \
  }                                                                   \
  MC_EMU_INLINE double __dadd_##suffix(double a, double b) {          \
    return ::mc_emu::add(a, b, ::mc_emu::Rounding::mode);             \
  }                                                                   \
  MC_EMU_INLINE double __dsub_##suffix(double a, double b) {          \
    return ::mc_emu::add(a, -b, ::mc_emu::Rounding::mode);            \
  }                                                                   \
  MC_EMU_INLINE double __dmul_##suffix(double a, double b) {          \
    return ::mc_emu::multiply(a, b, ::mc_emu::Rounding::mode);        \
  }                                                                   \
  MC_EMU_INLINE double __ddiv_##suffix(double a, double b) {          \
    return ::mc_emu::divide(a, b, ::mc_emu::Rounding::mode);          \
  }                                                                   \
  MC_EMU_INLINE double __drcp_##suffix(double a) {                    \
    return ::mc_emu::divide(1.0, a, ::mc_emu::Rounding::mode);        \
  }                                                                   \
  MC_EMU_INLINE double __dsqrt_##suffix(double a) {                   \
    return ::mc_emu::square_root(a, ::mc_emu::Rounding::mode);        \
  }                                                                   \
  MC_EMU_INLINE double __fma_##suffix(double a, double b, double c) { \
    return ::mc_emu::multiply_add(a, b, c, ::mc_emu::Rounding::mode); \
  }                                                                   \
  MC_EMU_INLINE float __double2float_##suffix(double a) {             \
    return ::mc_emu::float_of(a, ::mc_emu::Rounding::mode);           \
  }
MC_EACH_MODE(MC_ARITHMETIC)
#undef MC_ARITHMETIC

MC_EMU_INLINE float __frsqrt_rn(float a) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(a)));
}

// Real to integer: saturating; integer to real: rounded where it is not exact.
#define MC_CONVERSION(suffix, mode, Int, int_name, Real, real_name)      \
  MC_EMU_INLINE Int __##real_name##2##int_name##_##suffix(Real x) {      \
    return ::mc_emu::integer_of<Int>(x, ::mc_emu::Rounding::mode);       \
  }                                                                      \
  MC_EMU_INLINE Real __##int_name##2##real_name##_##suffix(Int x) {      \
    return ::mc_emu::real_of_integer<Real>(x, ::mc_emu::Rounding::mode); \
  }
#define MC_CONVERSIONS_OF_MODE(suffix, mode)                         \
  MC_CONVERSION(suffix, mode, int, int, float, float)                \
  MC_CONVERSION(suffix, mode, unsigned, uint, float, float)          \
  MC_CONVERSION(suffix, mode, long long, ll, float, float)           \
  MC_CONVERSION(suffix, mode, unsigned long long, ull, float, float) \
  MC_CONVERSION(suffix, mode, int, int, double, double)              \
  MC_CONVERSION(suffix, mode, unsigned, uint, double, double)        \
  MC_CONVERSION(suffix, mode, long long, ll, double, double)         \
  MC_CONVERSION(suffix, mode, unsigned long long, ull, double, double)
MC_EACH_MODE(MC_CONVERSIONS_OF_MODE)
#undef MC_CONVERSIONS_OF_MODE
#undef MC_CONVERSION
#undef MC_EACH_MODE

MC_EMU_INLINE int __float_as_int(float x) { return ::mc_emu::bits_as<int>(x); }
MC_EMU_INLINE unsigned __float_as_uint(float x) { return ::mc_emu::bits_as<unsigned>(x); }
MC_EMU_INLINE float __int_as_float(int x) { return ::mc_emu::bits_as<float>(x); }
MC_EMU_INLINE float __uint_as_float(unsigned x) { return ::mc_emu::bits_as<float>(x); }
MC_EMU_INLINE long long __double_as_longlong(double x) { return ::mc_emu::bits_as<long long>(x); }
MC_EMU_INLINE double __longlong_as_double(long long x) { return ::mc_emu::bits_as<double>(x); }
MC_EMU_INLINE int __double2hiint(double x) {
  return static_cast<int>(::mc_emu::bits_as<unsigned long long>(x) >> 32);
}
MC_EMU_INLINE int __double2loint(double x) {
  return static_cast<int>(::mc_emu::bits_as<unsigned long long>(x));
}
MC_EMU_INLINE double __hiloint2double(int high, int low) {
  const auto upper = static_cast<unsigned long long>(static_cast<unsigned>(high)) << 32;
  return ::mc_emu::bits_as<double>(upper | static_cast<unsigned>(low));
}

#endif  // MC_EMU_MATH_ROUNDING_H_
