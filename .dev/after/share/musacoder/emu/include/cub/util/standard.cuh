// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUB_UTIL_STANDARD_CUH_
#define MC_EMU_CUB_UTIL_STANDARD_CUH_

// libcu++: on the CPU, namespace cuda::std is the C++ library itself.  Besides, what namespace cuda
// adds to it, and Thrust's functors.

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

namespace cuda {

namespace std {
using namespace ::std;
}

template <class T = void>
struct maximum {
  T operator()(const T& a, const T& b) const { return a < b ? b : a; }
};
template <>
struct maximum<void> {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return a < b ? b : a;
  }
};
template <class T = void>
struct minimum {
  T operator()(const T& a, const T& b) const { return b < a ? b : a; }
};
template <>
struct minimum<void> {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return b < a ? b : a;
  }
};

template <class Result, class Function>
Function proclaim_return_type(Function function) {
  return function;
}

template <class A, class B>
constexpr auto ceil_div(A a, B b) -> decltype(a / b) {
  return (a + b - 1) / b;
}

}  // namespace cuda

namespace thrust {

using ::cuda::maximum;
using ::cuda::minimum;
using ::std::bit_and;
using ::std::bit_or;
using ::std::bit_xor;
using ::std::divides;
using ::std::equal_to;
using ::std::greater;
using ::std::greater_equal;
using ::std::less;
using ::std::less_equal;
using ::std::logical_and;
using ::std::logical_not;
using ::std::logical_or;
using ::std::make_pair;
using ::std::make_tuple;
using ::std::minus;
using ::std::modulus;
using ::std::multiplies;
using ::std::negate;
using ::std::not_equal_to;
using ::std::pair;
using ::std::plus;
using ::std::tuple;

template <class T = void>
struct square {
  T operator()(const T& a) const { return a * a; }
};
template <class T = void>
struct identity {
  const T& operator()(const T& a) const { return a; }
};

}  // namespace thrust

#endif  // MC_EMU_CUB_UTIL_STANDARD_CUH_
