// SPDX-License-Identifier: Apache-2.0
// AT_DISPATCH_*: a switch over dtypes whose cases run the body with `scalar_t`.
#ifndef MC_AT_DISPATCH_H_
#define MC_AT_DISPATCH_H_

#include "mc_at/check.h"

namespace detail {
inline c10::ScalarType scalar_type(c10::ScalarType type) { return type; }
}  // namespace detail

#define AT_PRIVATE_CASE_TYPE_USING_HINT(type, hint, ...)                   \
  case type: {                                                             \
    using hint [[maybe_unused]] = ::c10::impl::ScalarTypeToCPPTypeT<type>; \
    return __VA_ARGS__();                                                  \
  }
#define AT_DISPATCH_CASE(type, ...) AT_PRIVATE_CASE_TYPE_USING_HINT(type, scalar_t, __VA_ARGS__)
#define AT_DISPATCH_SWITCH(TYPE, NAME, ...)                                                   \
  [&] {                                                                                       \
    const auto& the_type = TYPE;                                                              \
    constexpr const char* at_dispatch_name = NAME;                                            \
    const ::c10::ScalarType _st = ::detail::scalar_type(the_type);                            \
    switch (_st) {                                                                            \
      __VA_ARGS__                                                                             \
      default:                                                                                \
        TORCH_CHECK_NOT_IMPLEMENTED(false, '"', at_dispatch_name, "\" not implemented for '", \
                                    ::c10::toString(_st), "'");                               \
    }                                                                                         \
    __builtin_unreachable();                                                                  \
  }()

#define MC_AT_CASE(name, ...) AT_DISPATCH_CASE(::c10::ScalarType::name, __VA_ARGS__)

#define AT_DISPATCH_CASE_FLOATING_TYPES(...) \
  MC_AT_CASE(Double, __VA_ARGS__) MC_AT_CASE(Float, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND_HALF(...) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) MC_AT_CASE(Half, __VA_ARGS__)
#define AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(...) \
  MC_AT_CASE(Half, __VA_ARGS__) MC_AT_CASE(BFloat16, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...) \
  MC_AT_CASE(Byte, __VA_ARGS__)              \
  MC_AT_CASE(Char, __VA_ARGS__)              \
  MC_AT_CASE(Int, __VA_ARGS__) MC_AT_CASE(Long, __VA_ARGS__) MC_AT_CASE(Short, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...) \
  AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)

#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND_HALF(__VA_ARGS__))
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_INDEX_TYPES(TYPE, NAME, ...)                                    \
  AT_DISPATCH_SWITCH(                                                               \
      TYPE, NAME,                                                                   \
      AT_PRIVATE_CASE_TYPE_USING_HINT(::c10::ScalarType::Int, index_t, __VA_ARGS__) \
          AT_PRIVATE_CASE_TYPE_USING_HINT(::c10::ScalarType::Long, index_t, __VA_ARGS__))

// These macros dispatch over one to four more types.
#define MC_AT_AND1(group, t1, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, group(__VA_ARGS__) AT_DISPATCH_CASE(t1, __VA_ARGS__))
#define MC_AT_AND2(group, t1, t2, TYPE, NAME, ...)                        \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                          \
                     group(__VA_ARGS__) AT_DISPATCH_CASE(t1, __VA_ARGS__) \
                         AT_DISPATCH_CASE(t2, __VA_ARGS__))
#define MC_AT_AND3(group, t1, t2, t3, TYPE, NAME, ...)                    \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                          \
                     group(__VA_ARGS__) AT_DISPATCH_CASE(t1, __VA_ARGS__) \
                         AT_DISPATCH_CASE(t2, __VA_ARGS__) AT_DISPATCH_CASE(t3, __VA_ARGS__))
#define MC_AT_AND4(group, t1, t2, t3, t4, TYPE, NAME, ...)                                   \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                             \
                     group(__VA_ARGS__) AT_DISPATCH_CASE(t1, __VA_ARGS__)                    \
                         AT_DISPATCH_CASE(t2, __VA_ARGS__) AT_DISPATCH_CASE(t3, __VA_ARGS__) \
                             AT_DISPATCH_CASE(t4, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND(t1, ...) \
  MC_AT_AND1(AT_DISPATCH_CASE_FLOATING_TYPES, t1, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND2(t1, t2, ...) \
  MC_AT_AND2(AT_DISPATCH_CASE_FLOATING_TYPES, t1, t2, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND3(t1, t2, t3, ...) \
  MC_AT_AND3(AT_DISPATCH_CASE_FLOATING_TYPES, t1, t2, t3, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND4(t1, t2, t3, t4, ...) \
  MC_AT_AND4(AT_DISPATCH_CASE_FLOATING_TYPES, t1, t2, t3, t4, __VA_ARGS__)
#define AT_DISPATCH_INTEGRAL_TYPES_AND(t1, ...) \
  MC_AT_AND1(AT_DISPATCH_CASE_INTEGRAL_TYPES, t1, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND(t1, ...) MC_AT_AND1(AT_DISPATCH_CASE_ALL_TYPES, t1, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND2(t1, t2, ...) \
  MC_AT_AND2(AT_DISPATCH_CASE_ALL_TYPES, t1, t2, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND3(t1, t2, t3, ...) \
  MC_AT_AND3(AT_DISPATCH_CASE_ALL_TYPES, t1, t2, t3, __VA_ARGS__)

#endif  // MC_AT_DISPATCH_H_
