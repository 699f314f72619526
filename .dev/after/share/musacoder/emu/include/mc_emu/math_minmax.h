// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_MATH_MINMAX_H_
#define MC_EMU_MATH_MINMAX_H_

// CUDA's global min and max, with the mixtures of types that it allows, and their named forms. They
// are plain functions, which win over std::min where a `using` makes both visible.  Of two floating
// numbers a NaN loses, as in fmin and fmax.  See math.h.

#include <math.h>

#include "mc_emu/math_bits.h"

#define MC_MIN_MAX_INTEGER(Result, A, B)                                             \
  MC_EMU_INLINE constexpr Result min(const A a, const B b) {                         \
    return static_cast<Result>(a) < static_cast<Result>(b) ? static_cast<Result>(a)  \
                                                           : static_cast<Result>(b); \
  }                                                                                  \
  MC_EMU_INLINE constexpr Result max(const A a, const B b) {                         \
    return static_cast<Result>(a) > static_cast<Result>(b) ? static_cast<Result>(a)  \
                                                           : static_cast<Result>(b); \
  }
#define MC_MIN_MAX_SIGNS(Signed, Unsigned)         \
  MC_MIN_MAX_INTEGER(Signed, Signed, Signed)       \
  MC_MIN_MAX_INTEGER(Unsigned, Unsigned, Unsigned) \
  MC_MIN_MAX_INTEGER(Unsigned, Signed, Unsigned)   \
  MC_MIN_MAX_INTEGER(Unsigned, Unsigned, Signed)
MC_MIN_MAX_SIGNS(int, unsigned)
MC_MIN_MAX_SIGNS(long, unsigned long)
MC_MIN_MAX_SIGNS(long long, unsigned long long)
#undef MC_MIN_MAX_SIGNS
#undef MC_MIN_MAX_INTEGER

MC_EMU_INLINE float min(const float a, const float b) { return ::fminf(a, b); }
MC_EMU_INLINE float max(const float a, const float b) { return ::fmaxf(a, b); }
MC_EMU_INLINE double min(const double a, const double b) { return ::fmin(a, b); }
MC_EMU_INLINE double max(const double a, const double b) { return ::fmax(a, b); }
MC_EMU_INLINE double min(const float a, const double b) { return ::fmin(a, b); }
MC_EMU_INLINE double max(const float a, const double b) { return ::fmax(a, b); }
MC_EMU_INLINE double min(const double a, const float b) { return ::fmin(a, b); }
MC_EMU_INLINE double max(const double a, const float b) { return ::fmax(a, b); }

MC_EMU_INLINE unsigned umin(unsigned a, unsigned b) { return min(a, b); }
MC_EMU_INLINE unsigned umax(unsigned a, unsigned b) { return max(a, b); }
MC_EMU_INLINE long long llmin(long long a, long long b) { return min(a, b); }
MC_EMU_INLINE long long llmax(long long a, long long b) { return max(a, b); }
MC_EMU_INLINE unsigned long long ullmin(unsigned long long a, unsigned long long b) {
  return min(a, b);
}
MC_EMU_INLINE unsigned long long ullmax(unsigned long long a, unsigned long long b) {
  return max(a, b);
}

#endif  // MC_EMU_MATH_MINMAX_H_
