// SPDX-License-Identifier: Apache-2.0
// The types at::Half and at::BFloat16: two bytes that convert to and from float.  Arithmetic is in
// float, as with PyTorch's own types.
#ifndef MC_AT_HALF_H_
#define MC_AT_HALF_H_

#ifndef __CUDACC_RTC__  // Its texts begin with device/facade/device/prelude.cuh.
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#endif

#if (defined(__CUDACC__) && defined(__NVCC__)) || defined(__CUDACC_RTC__)
#define MC_AT_BOTH __host__ __device__ inline
#ifdef __CUDA_ARCH__
#define MC_AT_ON_DEVICE
#endif
#else
#define MC_AT_BOTH inline
#endif

#ifdef __CUDACC_RTC__
#define MC_AT_CONSTANT __host__ __device__ constexpr
#else
#define MC_AT_CONSTANT constexpr
#endif

// NVIDIA's types, to and from which ours convert; cuda_fp16.h may be absent.
struct __half;
struct __nv_bfloat16;

namespace c10 {
namespace mc_at {

template <class To, class From>
MC_AT_BOTH To bits_as(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

MC_AT_BOTH float half_to_float(uint16_t bits) {
#ifdef MC_AT_ON_DEVICE
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
#else
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) {  // Infinity or NaN.
    return bits_as<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  }
  if (magnitude >= 0x400u) return bits_as<float>(sign | ((magnitude << 13) + 0x38000000u));
  const float small = static_cast<float>(magnitude) * (1.0f / 16777216.0f);  // Subnormal.
  return sign != 0 ? -small : small;
#endif
}

MC_AT_BOTH uint16_t half_from_float(float value) {
#ifdef MC_AT_ON_DEVICE
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
#else
  const uint32_t word = bits_as<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((word >> 16) & 0x8000u);
  const uint32_t magnitude = word & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u)
    return static_cast<uint16_t>(sign | 0x7c00u);  // Rounds to infinity.
  if (magnitude < 0x38800000u) {  // Subnormal: the adder rounds to a multiple of 2^-24.
    const float aligned = bits_as<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (bits_as<uint32_t>(aligned) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
#endif
}

MC_AT_BOTH float bfloat16_to_float(uint16_t bits) {
  return bits_as<float>(static_cast<uint32_t>(bits) << 16);
}
MC_AT_BOTH uint16_t bfloat16_from_float(float value) {
  const uint32_t word = bits_as<uint32_t>(value);
  if ((word & 0x7fffffffu) > 0x7f800000u) return 0x7fc0u;
  return static_cast<uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
}

}  // namespace mc_at

// Defines one of the two types; `Native` is NVIDIA's type with the same bits.
#define MC_AT_HALF_TYPE(Name, Native, load, save)                                 \
  struct alignas(2) Name {                                                        \
    uint16_t x;                                                                   \
    struct from_bits_t {};                                                        \
    MC_AT_CONSTANT static from_bits_t from_bits() { return {}; }                  \
    Name() = default;                                                             \
    MC_AT_CONSTANT Name(uint16_t bits, from_bits_t) : x(bits) {}                  \
    MC_AT_BOTH Name(float value) : x(mc_at::save(value)) {}                       \
    template <class T, std::enable_if_t<std::is_same<T, Native>::value, int> = 0> \
    MC_AT_BOTH Name(const T& value) : x(mc_at::bits_as<uint16_t>(value)) {}       \
    MC_AT_BOTH operator float() const { return mc_at::load(x); }                  \
    template <class T, std::enable_if_t<std::is_same<T, Native>::value, int> = 0> \
    MC_AT_BOTH operator T() const {                                               \
      return mc_at::bits_as<T>(x);                                                \
    }                                                                             \
  };                                                                              \
  MC_AT_HALF_OPERATOR(Name, +)                                                    \
  MC_AT_HALF_OPERATOR(Name, -)                                                    \
  MC_AT_HALF_OPERATOR(Name, *)                                                    \
  MC_AT_HALF_OPERATOR(Name, /)                                                    \
  MC_AT_BOTH Name operator-(const Name& a) { return -static_cast<float>(a); }

// Two halves, or a half and an int, give a half, like in PyTorch; float and double stay wide.
#define MC_AT_HALF_OPERATOR(Name, op)                                                     \
  MC_AT_BOTH Name operator op(const Name& a, const Name& b) {                             \
    return static_cast<float>(a) op static_cast<float>(b);                                \
  }                                                                                       \
  MC_AT_BOTH Name& operator op##=(Name & a, const Name & b) { return a = a op b; }        \
  MC_AT_BOTH float operator op(Name a, float b) { return static_cast<float>(a) op b; }    \
  MC_AT_BOTH float operator op(float a, Name b) { return a op static_cast<float>(b); }    \
  MC_AT_BOTH float& operator op##=(float& a, const Name & b) {                            \
    return a op## = static_cast<float>(b);                                                \
  }                                                                                       \
  MC_AT_BOTH double operator op(Name a, double b) { return static_cast<double>(a) op b; } \
  MC_AT_BOTH double operator op(double a, Name b) { return a op static_cast<double>(b); } \
  MC_AT_BOTH Name operator op(Name a, int b) {                                            \
    return a op static_cast<Name>(static_cast<float>(b));                                 \
  }                                                                                       \
  MC_AT_BOTH Name operator op(int a, Name b) {                                            \
    return static_cast<Name>(static_cast<float>(a)) op b;                                 \
  }                                                                                       \
  MC_AT_BOTH Name operator op(Name a, int64_t b) {                                        \
    return a op static_cast<Name>(static_cast<float>(b));                                 \
  }                                                                                       \
  MC_AT_BOTH Name operator op(int64_t a, Name b) {                                        \
    return static_cast<Name>(static_cast<float>(a)) op b;                                 \
  }

MC_AT_HALF_TYPE(Half, __half, half_to_float, half_from_float)
MC_AT_HALF_TYPE(BFloat16, __nv_bfloat16, bfloat16_to_float, bfloat16_from_float)
#undef MC_AT_HALF_TYPE
#undef MC_AT_HALF_OPERATOR

}  // namespace c10

namespace std {
#define MC_AT_HALF_LIMITS(Name, max_bits, lowest_bits, min_bits, eps_bits, digits_)                \
  template <>                                                                                      \
  class numeric_limits<c10::Name> {                                                                \
   public:                                                                                         \
    static constexpr bool is_specialized = true;                                                   \
    static constexpr bool is_signed = true;                                                        \
    static constexpr bool is_integer = false;                                                      \
    static constexpr bool has_infinity = true;                                                     \
    static constexpr bool has_quiet_NaN = true;                                                    \
    static constexpr int digits = digits_;                                                         \
    MC_AT_CONSTANT static c10::Name max() { return {max_bits, c10::Name::from_bits()}; }           \
    MC_AT_CONSTANT static c10::Name lowest() { return {lowest_bits, c10::Name::from_bits()}; }     \
    MC_AT_CONSTANT static c10::Name min() { return {min_bits, c10::Name::from_bits()}; }           \
    MC_AT_CONSTANT static c10::Name epsilon() { return {eps_bits, c10::Name::from_bits()}; }       \
    MC_AT_CONSTANT static c10::Name infinity() {                                                   \
      return {static_cast<uint16_t>(max_bits + 1), c10::Name::from_bits()};                        \
    }                                                                                              \
    MC_AT_CONSTANT static c10::Name quiet_NaN() {                                                  \
      return {static_cast<uint16_t>(max_bits + 1 + (1 << (digits_ - 2))), c10::Name::from_bits()}; \
    }                                                                                              \
  };
MC_AT_HALF_LIMITS(Half, 0x7bff, 0xfbff, 0x0400, 0x1400, 11)
MC_AT_HALF_LIMITS(BFloat16, 0x7f7f, 0xff7f, 0x0080, 0x3c00, 8)
#undef MC_AT_HALF_LIMITS
}  // namespace std

#endif  // MC_AT_HALF_H_
