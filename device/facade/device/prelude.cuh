// SPDX-License-Identifier: Apache-2.0
//
// Names that host headers give to device code (src/lex/split.h): limits, constants, integer types,
// and namespaces for using directives.  NVRTC has no such headers.
#pragma once

namespace c10 {}
namespace pybind11 {}
namespace at {
using namespace c10;
}
namespace torch {
using namespace c10;
}

#ifndef __CUDACC_RTC__
#include <algorithm>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#else

// Macros, because CUDA's headers may declare these names with types that differ from the host's.
typedef signed char mc_at_int8;
typedef short mc_at_int16;
typedef int mc_at_int32;
typedef long mc_at_int64;
typedef unsigned char mc_at_uint8;
typedef unsigned short mc_at_uint16;
typedef unsigned int mc_at_uint32;
typedef unsigned long mc_at_uint64;
typedef long mc_at_intptr;
typedef unsigned long mc_at_uintptr;
#define int8_t mc_at_int8
#define int16_t mc_at_int16
#define int32_t mc_at_int32
#define int64_t mc_at_int64
#define uint8_t mc_at_uint8
#define uint16_t mc_at_uint16
#define uint32_t mc_at_uint32
#define uint64_t mc_at_uint64
#define intptr_t mc_at_intptr
#define uintptr_t mc_at_uintptr

#define FLT_MAX 3.40282346638528859811704183484516925e+38F
#define FLT_MIN 1.17549435082228750796873653722224568e-38F
#define FLT_EPSILON 1.19209289550781250000000000000000000e-7F
#define DBL_MAX 1.79769313486231570814527423731704357e+308
#define DBL_MIN 2.22507385850720138309023271733240406e-308
#define DBL_EPSILON 2.22044604925031308084726333618164062e-16
#define SHRT_MAX 32767
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295U
#define LONG_MAX 9223372036854775807L
#define LONG_MIN (-LONG_MAX - 1L)
#define LLONG_MAX 9223372036854775807LL
#define LLONG_MIN (-LLONG_MAX - 1LL)
#define INFINITY __builtin_bit_cast(float, 0x7f800000)
#define NAN __builtin_bit_cast(float, 0x7fc00000)
#define HUGE_VAL __builtin_bit_cast(double, 0x7ff0000000000000)
#define HUGE_VALF INFINITY
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LN2 0.69314718055994530942
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440

#define MC_AT_BOTH __host__ __device__ constexpr

namespace std {

template <bool kIs, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
  using type = T;
};
template <bool kIs, class T = void>
using enable_if_t = typename enable_if<kIs, T>::type;

template <class A, class B>
struct is_same {
  static constexpr bool value = false;
};
template <class A>
struct is_same<A, A> {
  static constexpr bool value = true;
};
template <class A, class B>
constexpr bool is_same_v = is_same<A, B>::value;

template <class T>
MC_AT_BOTH const T& min(const T& a, const T& b) {
  return b < a ? b : a;
}
template <class T>
MC_AT_BOTH const T& max(const T& a, const T& b) {
  return a < b ? b : a;
}

template <class T>
class numeric_limits;

template <>
class numeric_limits<float> {
 public:
  MC_AT_BOTH static float max() { return FLT_MAX; }
  MC_AT_BOTH static float min() { return FLT_MIN; }
  MC_AT_BOTH static float lowest() { return -FLT_MAX; }
  MC_AT_BOTH static float epsilon() { return FLT_EPSILON; }
  MC_AT_BOTH static float infinity() { return INFINITY; }
  MC_AT_BOTH static float quiet_NaN() { return NAN; }
};
template <>
class numeric_limits<double> {
 public:
  MC_AT_BOTH static double max() { return DBL_MAX; }
  MC_AT_BOTH static double min() { return DBL_MIN; }
  MC_AT_BOTH static double lowest() { return -DBL_MAX; }
  MC_AT_BOTH static double epsilon() { return DBL_EPSILON; }
  MC_AT_BOTH static double infinity() { return HUGE_VAL; }
};
#define MC_AT_LIMITS(Type, least, greatest)           \
  template <>                                         \
  class numeric_limits<Type> {                        \
   public:                                            \
    MC_AT_BOTH static Type max() { return greatest; } \
    MC_AT_BOTH static Type min() { return least; }    \
    MC_AT_BOTH static Type lowest() { return least; } \
  };
MC_AT_LIMITS(int, INT_MIN, INT_MAX)
MC_AT_LIMITS(unsigned, 0, UINT_MAX)
MC_AT_LIMITS(long, LONG_MIN, LONG_MAX)
MC_AT_LIMITS(long long, LLONG_MIN, LLONG_MAX)
MC_AT_LIMITS(unsigned long, 0, 2 * static_cast<unsigned long>(LONG_MAX) + 1)
MC_AT_LIMITS(unsigned long long, 0, 2 * static_cast<unsigned long long>(LLONG_MAX) + 1)
#undef MC_AT_LIMITS

using ::abs, ::ceil, ::cos, ::erf, ::exp, ::fabs, ::floor, ::fma, ::fmax, ::fmin, ::fmod, ::isinf,
    ::isnan, ::log, ::log1p, ::log2, ::pow, ::round, ::sin, ::sqrt, ::tan, ::tanh;

}  // namespace std

#undef MC_AT_BOTH

#endif  // __CUDACC_RTC__
