// SPDX-License-Identifier: Apache-2.0
//
// Conversions. Common ones are loops that the compiler vectorises; all others go by one path,
// which reads any source as a number of 64 bits and takes the types from the step.
#include "ptx/halves.h"
#include "ptx/lanes.h"

namespace mc::ptx::MC_PTX_VARIANT {
namespace {

// ---- The common ones.
template <class D, class S>
const Step* plain(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const S* a = w.at<S>(s->a);
  each_lane(w, w.at<D>(s->d), [&](int l) { return static_cast<D>(a[l]); });
  return s + 1;
}

template <class D, class S>
const Step* widen_lanes(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  alignas(32) float row[kLanes];
  widen_row(w.at<S>(s->a), row, kLanes);
  each_lane(w, w.at<D>(s->d), [&](int l) { return static_cast<D>(row[l]); });
  return s + 1;
}

template <class D>
const Step* narrow_lanes(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  alignas(32) D row[kLanes];
  narrow_row(w.at<float>(s->a), row, kLanes);
  each_lane(w, w.at<uint16_t>(s->d), [&](int l) { return row[l].bits; });
  return s + 1;
}

// Floats to integers, in the rounding mode that an earlier step sets. NaN becomes 0, and values
// out of range saturate.
template <class D>
const Step* to_integer(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const float* a = w.at<float>(s->a);
  constexpr bool kSigned = std::is_signed_v<D>;
  constexpr float kEnd = kSigned ? 0x1p31F : 0x1p32F, kBegin = kSigned ? -0x1p31F : 0.0F;
  constexpr D kMost = kSigned ? static_cast<D>(0x7FFFFFFF) : static_cast<D>(0xFFFFFFFF);
  constexpr D kLeast = kSigned ? static_cast<D>(0x80000000) : 0;
  each_lane(w, w.at<D>(s->d), [&](int l) -> D {
    const float x = __builtin_rintf(a[l]);
    const float inside = x >= kBegin && x < kEnd ? x : 0.0F;
    const D value = static_cast<D>(static_cast<int64_t>(inside));
    return x >= kEnd ? kMost : x < kBegin ? kLeast : value;
  });
  return s + 1;
}

const Step* saturated(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const float* a = w.at<float>(s->a);
  each_lane(w, w.at<float>(s->d), [&](int l) {
    const float x = a[l];
    return x > 0 ? (x < 1 ? x : 1.0F) : 0.0F;
  });
  return s + 1;
}

const Step* to_integral(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const float* a = w.at<float>(s->a);
  each_lane(w, w.at<float>(s->d), [&](int l) { return __builtin_rintf(a[l]); });
  return s + 1;
}

// ---- All others. The step holds a ConvertKey.
struct Number {
  bool is_float = false;
  bool is_negative = false;  // The sign of an integer.
  uint64_t bits = 0;         // An integer's, in two's complement.
  double value = 0;
};

uint64_t extended(uint64_t bits, Type type) {
  const int shift = 64 - 8 * bytes_of(type);
  if (is_signed(type)) return static_cast<uint64_t>(static_cast<int64_t>(bits << shift) >> shift);
  return bits << shift >> shift;
}

Number read_number(uint64_t bits, Type type) {
  Number number;
  number.is_float = !is_integer(type);
  switch (type) {
    case Type::kF16:
      number.value = widen(F16{static_cast<uint16_t>(bits)});
      return number;
    case Type::kBf16:
      number.value = widen(Bf16{static_cast<uint16_t>(bits)});
      return number;
    case Type::kF32:
      number.value = __builtin_bit_cast(float, static_cast<uint32_t>(bits));
      return number;
    case Type::kF64:
      number.value = __builtin_bit_cast(double, bits);
      return number;
    default:
      number.bits = extended(bits, type);
      number.is_negative = is_signed(type) && static_cast<int64_t>(number.bits) < 0;
      return number;
  }
}

uint64_t integer_limit(Type type, bool is_most) {
  const int bits = 8 * bytes_of(type);
  if (!is_signed(type)) return is_most ? ~uint64_t{0} >> (64 - bits) : 0;
  const uint64_t half = uint64_t{1} << (bits - 1);
  return is_most ? half - 1 : 0 - half;
}

uint64_t integer_of_float(double given, const ConvertKey& key) {
  const double x = __builtin_rint(given);
  const int bits = 8 * bytes_of(key.to);
  const bool is_signed_type = is_signed(key.to);
  // A NaN becomes 0 between narrow types, and otherwise the highest bit.
  if (x != x) {
    const bool is_narrow = key.from != Type::kF64 && bits < 64;
    return is_narrow ? 0 : extended(uint64_t{1} << (bits - 1), key.to);
  }
  const double end = is_signed_type ? __builtin_ldexp(1, bits - 1) : __builtin_ldexp(1, bits);
  const double begin = is_signed_type ? -end : 0;
  if (x >= end) return integer_limit(key.to, true);
  if (x < begin) return integer_limit(key.to, false);
  return x < 0 ? 0 - static_cast<uint64_t>(-x) : static_cast<uint64_t>(x);
}

uint64_t integer_of_integer(const Number& from, const ConvertKey& key) {
  if (!key.is_saturated) return extended(from.bits, key.to);
  const uint64_t most = integer_limit(key.to, true), least = integer_limit(key.to, false);
  if (from.is_negative) {
    if (!is_signed(key.to)) return 0;
    const bool is_below = static_cast<int64_t>(from.bits) < static_cast<int64_t>(least);
    return is_below ? least : from.bits;
  }
  return from.bits > most ? most : from.bits;
}

double float_operand(const Number& from, const ConvertKey& key) {
  double x = from.value;
  if (key.to_integral) x = __builtin_rint(x);
  if (key.is_relu) x = rectified(x);
  return x;
}

double of_integer(const Number& from, bool to_double) {
  const double exact = from.is_negative ? static_cast<double>(static_cast<int64_t>(from.bits))
                                        : static_cast<double>(from.bits);
  if (to_double) return exact;
  return from.is_negative ? static_cast<float>(static_cast<int64_t>(from.bits))
                          : static_cast<float>(from.bits);
}

// The rule of .ftz is that of arithmetic.cc: the number is rounded far above the least exponent.
float flushed(double x) {
  const float rounded = static_cast<float>(x), scaled = static_cast<float>(x * 0x1p64);
  return __builtin_fabsf(scaled) < 0x1p-62F ? __builtin_copysignf(0.0F, rounded) : rounded;
}

uint64_t float_bits(const Number& from, const ConvertKey& key) {
  double x = from.is_float ? float_operand(from, key) : of_integer(from, key.to != Type::kF32);
  if (key.is_saturated) x = x > 0 ? (x < 1 ? x : 1) : 0;
  switch (key.to) {
    MC_ROW(Type::kF16, narrow<F16>(to_odd(x), key.rounding).bits)
    MC_ROW(Type::kBf16, narrow<Bf16>(to_odd(x), key.rounding).bits)
    MC_ROW(Type::kF32,
           __builtin_bit_cast(uint32_t, key.is_ftz ? flushed(x) : static_cast<float>(x)))
    default:
      return __builtin_bit_cast(uint64_t, x);
  }
}

uint64_t converted(uint64_t bits, const ConvertKey& key) {
  Number from = read_number(bits, key.from);
  if (key.is_ftz && key.from == Type::kF32 && __builtin_fabs(from.value) < 0x1p-126) {
    from.value = __builtin_copysign(0.0, from.value);
  }
  if (!is_integer(key.to)) return float_bits(from, key);
  return from.is_float ? integer_of_float(from.value, key) : integer_of_integer(from, key);
}

ConvertKey key_of(const Step* s) {
  ConvertKey key;
  key.to = static_cast<Type>(s->b);
  key.from = static_cast<Type>(s->c);
  key.to_width = static_cast<int>(s->e & 15);
  key.from_width = static_cast<int>(s->e >> 4 & 15);
  key.rounding = static_cast<Rounding>(s->e >> 8 & 3);
  key.to_integral = (s->flags & 1) != 0;
  key.is_saturated = (s->flags & 2) != 0;
  key.is_relu = (s->flags & 4) != 0;
  key.is_ftz = (s->flags & 8) != 0;
  return key;
}

const Step* general(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const ConvertKey key = key_of(s);
  const uint8_t* from = w.frame + s->a;
  uint8_t* to = w.frame + s->d;
  const size_t from_width = static_cast<size_t>(key.from_width);
  const size_t to_width = static_cast<size_t>(key.to_width);
  for (size_t lane = 0; lane < kLanes; ++lane) {
    if (!has(w.active, static_cast<int>(lane))) continue;
    uint64_t bits = 0;
    memcpy(&bits, from + lane * from_width, from_width);
    const uint64_t result = converted(bits, key);
    memcpy(to + lane * to_width, &result, to_width);
  }
  return s + 1;
}

template <class S>
Handler find_from_integer(Type to, int to_width) {
  if (bytes_of(to) == to_width) {
    switch (to_width) {
      case 2:
        return is_integer(to) ? plain<uint16_t, S> : nullptr;
      case 4:
        return is_integer(to) ? plain<uint32_t, S> : plain<float, S>;
      default:
        return is_integer(to) ? plain<uint64_t, S> : plain<double, S>;
    }
  }
  return nullptr;
}

Handler find_common(const ConvertKey& key) {
  const bool is_nearest = key.rounding == Rounding::kNearest;
  if (key.to == Type::kS32 && key.from == Type::kF32 && !key.is_ftz && key.to_width == 4) {
    return to_integer<int32_t>;
  }
  if (key.to == Type::kU32 && key.from == Type::kF32 && !key.is_ftz && key.to_width == 4) {
    return to_integer<uint32_t>;
  }
  if (key.to == Type::kF32 && key.from == Type::kF32 && !key.is_relu && !key.is_ftz) {
    if (key.to_integral) return key.is_saturated ? nullptr : to_integral;
    return key.is_saturated ? saturated : nullptr;
  }
  const bool is_plain = !key.is_saturated && !key.is_relu && !key.to_integral && !key.is_ftz;
  if (!is_plain || key.from_width != bytes_of(key.from)) return nullptr;
  switch (key.from) {
    case Type::kU16:
      MC_ROW(Type::kB16, find_from_integer<uint16_t>(key.to, key.to_width))
      MC_ROW(Type::kS16, find_from_integer<int16_t>(key.to, key.to_width))
    case Type::kU32:
      MC_ROW(Type::kB32, find_from_integer<uint32_t>(key.to, key.to_width))
      MC_ROW(Type::kS32, find_from_integer<int32_t>(key.to, key.to_width))
    case Type::kU64:
      MC_ROW(Type::kB64, find_from_integer<uint64_t>(key.to, key.to_width))
      MC_ROW(Type::kS64, find_from_integer<int64_t>(key.to, key.to_width))
      MC_ROW(Type::kF16, key.to == Type::kF32 ? widen_lanes<float, F16> : nullptr)
      MC_ROW(Type::kBf16, key.to == Type::kF32 ? widen_lanes<float, Bf16> : nullptr)
    case Type::kF32:
      if (key.to == Type::kF64) return plain<double, float>;
      if (key.to == Type::kF16 && is_nearest) return narrow_lanes<F16>;
      return key.to == Type::kBf16 && is_nearest ? narrow_lanes<Bf16> : nullptr;
      MC_ROW(Type::kF64, key.to == Type::kF32 ? plain<float, double> : nullptr)
    default:
      return nullptr;
  }
}

bool is_number(Type type) {
  const bool is_float =
      type == Type::kF16 || type == Type::kBf16 || type == Type::kF32 || type == Type::kF64;
  return is_float || (is_integer(type) && bytes_of(type) >= 1 && bytes_of(type) <= 8);
}

}  // namespace

Handler find_convert(const ConvertKey& key) {
  if (is_fp8_pair(key.to) || is_fp8_pair(key.from)) return find_convert_fp8(key);
  if (!is_number(key.to) || !is_number(key.from)) return nullptr;
  if (key.to_width < bytes_of(key.to) || key.from_width < bytes_of(key.from)) return nullptr;
  if (const Handler handler = find_common(key)) return handler;
  return general;
}

}  // namespace mc::ptx::MC_PTX_VARIANT
