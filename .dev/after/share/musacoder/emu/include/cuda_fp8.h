// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUDA_FP8_H_
#define MC_EMU_CUDA_FP8_H_

// CUDA's <cuda_fp8.h>: the 8-bit floating-point types E4M3 and E5M2, their pairs and fours, and the
// conversions.  E4M3 has no infinity; its one NaN is 0x7F.

#include <cmath>
#include <cstdint>

#include "cuda_bf16.h"
#include "cuda_fp16.h"

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

namespace mc_emu {

struct E4m3 {
  static constexpr int kMantissaBits = 3;
  static constexpr int kExponentBias = 7;
  static constexpr std::uint32_t kMost = 0x7E;
  static constexpr std::uint32_t kOverflow = 0x7F;  // NaN: there is no infinity.
};
struct E5m2 {
  static constexpr int kMantissaBits = 2;
  static constexpr int kExponentBias = 15;
  static constexpr std::uint32_t kMost = 0x7B;
  static constexpr std::uint32_t kOverflow = 0x7C;
};

template <class Format>
MC_EMU_INLINE std::uint8_t encode8(float value, bool saturates) {
  const std::uint32_t bits = bits_as<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu, sign = bits >> 24 & 0x80u;
  if (magnitude > 0x7F800000u) return 0x7F;
  std::uint32_t out = Format::kOverflow;
  if (magnitude < 0x7F800000u) {
    const Truncated t = truncate_to<Format>(magnitude);
    out = t.bits + (rounds_away(t, sign != 0, Rounding::kNearest) ? 1u : 0u);
  }
  if (out > Format::kMost) out = saturates ? Format::kMost : Format::kOverflow;
  return static_cast<std::uint8_t>(out | sign);
}

template <class Format>
MC_EMU_INLINE float decode8(std::uint8_t bits) {
  const std::uint32_t magnitude = bits & 0x7Fu;
  const int exponent = static_cast<int>(magnitude >> Format::kMantissaBits);
  const int mantissa = static_cast<int>(magnitude & ((1u << Format::kMantissaBits) - 1u));
  float value = 0;
  if (magnitude > Format::kMost) {
    value = magnitude == 0x7C && Format::kOverflow == 0x7C ? HUGE_VALF : __builtin_nanf("");
  } else if (exponent == 0) {
    value =
        ::ldexpf(static_cast<float>(mantissa), 1 - Format::kExponentBias - Format::kMantissaBits);
  } else {
    value = ::ldexpf(static_cast<float>(mantissa + (1 << Format::kMantissaBits)),
                     exponent - Format::kExponentBias - Format::kMantissaBits);
  }
  return (bits & 0x80u) != 0 ? -value : value;
}

MC_EMU_INLINE std::uint8_t encode8(float value, __nv_saturation_t saturation,
                                   __nv_fp8_interpretation_t kind) {
  const bool saturates = saturation == __NV_SATFINITE;
  return kind == __NV_E4M3 ? encode8<E4m3>(value, saturates) : encode8<E5m2>(value, saturates);
}
MC_EMU_INLINE float decode8(std::uint8_t bits, __nv_fp8_interpretation_t kind) {
  return kind == __NV_E4M3 ? decode8<E4m3>(bits) : decode8<E5m2>(bits);
}
// A double with one rounding: to odd first.
MC_EMU_INLINE float odd_float(double x) { return float_odd(x); }

}  // namespace mc_emu

inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t saturation,
                                                __nv_fp8_interpretation_t kind) {
  return ::mc_emu::encode8(x, saturation, kind);
}
inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x, __nv_saturation_t saturation,
                                                 __nv_fp8_interpretation_t kind) {
  return ::mc_emu::encode8(::mc_emu::odd_float(x), saturation, kind);
}
inline __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw x, __nv_saturation_t saturation,
                                                  __nv_fp8_interpretation_t kind) {
  return ::mc_emu::encode8(::mc_emu::decode<::mc_emu::Fp16>(x.x), saturation, kind);
}
inline __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw x,
                                                      __nv_saturation_t saturation,
                                                      __nv_fp8_interpretation_t kind) {
  return ::mc_emu::encode8(::mc_emu::decode<::mc_emu::Bf16>(x.x), saturation, kind);
}
inline __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 x, __nv_saturation_t saturation,
                                                     __nv_fp8_interpretation_t kind) {
  return static_cast<__nv_fp8x2_storage_t>(::mc_emu::encode8(x.x, saturation, kind) |
                                           ::mc_emu::encode8(x.y, saturation, kind) << 8);
}
inline __nv_fp8x2_storage_t __nv_cvt_double2_to_fp8x2(double2 x, __nv_saturation_t saturation,
                                                      __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float2_to_fp8x2(make_float2(::mc_emu::odd_float(x.x), ::mc_emu::odd_float(x.y)),
                                  saturation, kind);
}
inline __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(__half2_raw x, __nv_saturation_t saturation,
                                                       __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float2_to_fp8x2(
      make_float2(::mc_emu::decode<::mc_emu::Fp16>(x.x), ::mc_emu::decode<::mc_emu::Fp16>(x.y)),
      saturation, kind);
}
inline __nv_fp8x2_storage_t __nv_cvt_bfloat16raw2_to_fp8x2(__nv_bfloat162_raw x,
                                                           __nv_saturation_t saturation,
                                                           __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float2_to_fp8x2(
      make_float2(::mc_emu::decode<::mc_emu::Bf16>(x.x), ::mc_emu::decode<::mc_emu::Bf16>(x.y)),
      saturation, kind);
}
inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t kind) {
  return __half_raw{::mc_emu::encode<::mc_emu::Fp16>(::mc_emu::decode8(x, kind))};
}
inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x,
                                              __nv_fp8_interpretation_t kind) {
  __half2_raw result;
  result.x = __nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(x & 0xFF), kind).x;
  result.y = __nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(x >> 8), kind).x;
  return result;
}

// The types: Name is a number, Name2 a pair, Name4 four of them.
#define MC_FP8(Name, Name2, Name4, kind)                                                         \
  struct Name {                                                                                  \
    __nv_fp8_storage_t __x;                                                                      \
    Name() = default;                                                                            \
    explicit Name(const __half f)                                                                \
        : __x(__nv_cvt_halfraw_to_fp8(static_cast<__half_raw>(f), __NV_SATFINITE, kind)) {}      \
    explicit Name(const __nv_bfloat16 f)                                                         \
        : __x(__nv_cvt_bfloat16raw_to_fp8(static_cast<__nv_bfloat16_raw>(f), __NV_SATFINITE,     \
                                          kind)) {}                                              \
    explicit Name(const float f) : __x(__nv_cvt_float_to_fp8(f, __NV_SATFINITE, kind)) {}        \
    explicit Name(const double f) : __x(__nv_cvt_double_to_fp8(f, __NV_SATFINITE, kind)) {}      \
    template <class Int, std::enable_if_t<std::is_integral_v<Int>, int> = 0>                     \
    explicit Name(const Int i)                                                                   \
        : __x(__nv_cvt_double_to_fp8(static_cast<double>(i), __NV_SATFINITE, kind)) {}           \
    explicit operator float() const { return ::mc_emu::decode8(__x, kind); }                     \
    explicit operator double() const { return ::mc_emu::decode8(__x, kind); }                    \
    explicit operator __half() const { return __half(__nv_cvt_fp8_to_halfraw(__x, kind)); }      \
    explicit operator __nv_bfloat16() const {                                                    \
      return __float2bfloat16(::mc_emu::decode8(__x, kind));                                     \
    }                                                                                            \
    explicit operator bool() const { return (__x & 0x7F) != 0; }                                 \
    template <class Int,                                                                         \
              std::enable_if_t<std::is_integral_v<Int> && !std::is_same_v<Int, bool>, int> = 0>  \
    explicit operator Int() const {                                                              \
      return ::mc_emu::integer_of<Int>(::mc_emu::decode8(__x, kind), ::mc_emu::Rounding::kZero); \
    }                                                                                            \
  };                                                                                             \
  struct Name2 {                                                                                 \
    __nv_fp8x2_storage_t __x;                                                                    \
    Name2() = default;                                                                           \
    explicit Name2(const __half2 f)                                                              \
        : __x(__nv_cvt_halfraw2_to_fp8x2(static_cast<__half2_raw>(f), __NV_SATFINITE, kind)) {}  \
    explicit Name2(const __nv_bfloat162 f)                                                       \
        : __x(__nv_cvt_bfloat16raw2_to_fp8x2(static_cast<__nv_bfloat162_raw>(f), __NV_SATFINITE, \
                                             kind)) {}                                           \
    explicit Name2(const float2 f) : __x(__nv_cvt_float2_to_fp8x2(f, __NV_SATFINITE, kind)) {}   \
    explicit Name2(const double2 f) : __x(__nv_cvt_double2_to_fp8x2(f, __NV_SATFINITE, kind)) {} \
    explicit operator __half2() const { return __half2(__nv_cvt_fp8x2_to_halfraw2(__x, kind)); } \
    explicit operator float2() const {                                                           \
      return make_float2(::mc_emu::decode8(static_cast<std::uint8_t>(__x & 0xFF), kind),         \
                         ::mc_emu::decode8(static_cast<std::uint8_t>(__x >> 8), kind));          \
    }                                                                                            \
  };                                                                                             \
  struct Name4 {                                                                                 \
    __nv_fp8x4_storage_t __x;                                                                    \
    Name4() = default;                                                                           \
    explicit Name4(const __half2 low, const __half2 high)                                        \
        : __x(Name2(low).__x | static_cast<unsigned>(Name2(high).__x) << 16) {}                  \
    explicit Name4(const __nv_bfloat162 low, const __nv_bfloat162 high)                          \
        : __x(Name2(low).__x | static_cast<unsigned>(Name2(high).__x) << 16) {}                  \
    explicit Name4(const float4 f)                                                               \
        : __x(Name2(make_float2(f.x, f.y)).__x |                                                 \
              static_cast<unsigned>(Name2(make_float2(f.z, f.w)).__x) << 16) {}                  \
    explicit operator float4() const {                                                           \
      const auto part = [this](int i) {                                                          \
        return ::mc_emu::decode8(static_cast<std::uint8_t>(__x >> (8 * i)), kind);               \
      };                                                                                         \
      return make_float4(part(0), part(1), part(2), part(3));                                    \
    }                                                                                            \
  };
MC_FP8(__nv_fp8_e4m3, __nv_fp8x2_e4m3, __nv_fp8x4_e4m3, __NV_E4M3)
MC_FP8(__nv_fp8_e5m2, __nv_fp8x2_e5m2, __nv_fp8x4_e5m2, __NV_E5M2)
#undef MC_FP8

#endif  // MC_EMU_CUDA_FP8_H_
