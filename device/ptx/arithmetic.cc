// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic of floating point. Integers: integer.cc; comparisons: compare.cc.
//
// An operation is a struct with a static function for one element. Where GPUs approximate (ex2,
// lg2, sin), so do these, by other polynomials: results differ by some units in the last place.
#include <cmath>

#include "ptx/halves.h"
#include "ptx/lanes.h"

namespace mc::ptx::MC_PTX_VARIANT {
namespace {

MC_INLINE float flush(float x) {
  const float size = __builtin_fabsf(x);
  return size < 0x1p-126F ? __builtin_copysignf(0.0F, x) : x;
}
MC_INLINE double flush(double x) { return x; }

// ---- One element.
MC_ELEMENT(Mov, (T a), a)
MC_ELEMENT(Add, (T a, T b), a + b)
MC_ELEMENT(Sub, (T a, T b), a - b)
MC_ELEMENT(Mul, (T a, T b), a* b)
MC_ELEMENT(Div, (T a, T b), a / b)
// For finite divisors above 2^126, div.approx gives zeros, and a NaN if the dividend is infinite.
struct DivApprox {
  MC_INLINE static float of(float a, float b) {
    const float size = __builtin_fabsf(b);
    const bool has_quotient = !(size > 0x1p126F && size < __builtin_inff());
    return has_quotient ? a / b : a * __builtin_copysignf(0.0F, b);
  }
};
struct Fma {
  MC_INLINE static float of(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  MC_INLINE static double of(double a, double b, double c) { return __builtin_fma(a, b, c); }
};
struct Abs {
  MC_INLINE static float of(float a) { return __builtin_fabsf(a); }
  MC_INLINE static double of(double a) { return __builtin_fabs(a); }
};
MC_ELEMENT(Neg, (T a), -a)
struct CopySign {
  // The first operand gives the sign.
  MC_INLINE static float of(float a, float b) { return __builtin_copysignf(b, a); }
  MC_INLINE static double of(double a, double b) { return __builtin_copysign(b, a); }
};

// -0 is less than +0. A number wins against a NaN, except with .NaN.
template <class T>
MC_INLINE T lesser(T a, T b) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  const T same = __builtin_bit_cast(T, __builtin_bit_cast(Bits, a) | __builtin_bit_cast(Bits, b));
  return a < b ? a : (a == b ? same : b);
}
MC_ELEMENT(Min, (T a, T b), a != a ? b : b != b ? a : lesser(a, b))
MC_ELEMENT(MinNan, (T a, T b), a != a ? a : b != b ? b : lesser(a, b))
template <class T>
MC_INLINE T greater(T a, T b) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  const T same = __builtin_bit_cast(T, __builtin_bit_cast(Bits, a) & __builtin_bit_cast(Bits, b));
  return a > b ? a : (a == b ? same : b);
}
MC_ELEMENT(Max, (T a, T b), a != a ? b : b != b ? a : greater(a, b))
MC_ELEMENT(MaxNan, (T a, T b), a != a ? a : b != b ? b : greater(a, b))
MC_ELEMENT(Rcp, (T a), T(1) / a)
struct Sqrt {
  MC_INLINE static float of(float a) { return __builtin_sqrtf(a); }
  MC_INLINE static double of(double a) { return __builtin_sqrt(a); }
};
MC_ELEMENT(Rsqrt, (T a), T(1) / Sqrt::of(a))
struct Sin {
  static float of(float a) { return sinf(a); }
};
struct Cos {
  static float of(float a) { return cosf(a); }
};
struct Tanh {
  static float of(float a) { return tanhf(a); }
};

// 2^x = 2^n 2^r with |r| <= 1/2 and the series of e^(r ln 2); the power is applied in two halves,
// since its exponent may be out of range for a result that is not.
struct Ex2 {
  MC_INLINE static float of(float given) {
    const float x = given < -150.0F ? -150.0F : given > 129.0F ? 129.0F : given;
    const float n = __builtin_rintf(x), r = (x - n) * 0.693147180559945F;
    float p = 1.0F / 5040;
    p = p * r + 1.0F / 720;
    p = p * r + 1.0F / 120;
    p = p * r + 1.0F / 24;
    p = p * r + 1.0F / 6;
    p = p * r + 0.5F;
    p = p * r + 1;
    p = p * r + 1;
    const int power = x == x ? static_cast<int>(n) : 0, half = power >> 1;
    const uint32_t low = static_cast<uint32_t>(half + 127) << 23;
    const uint32_t high = static_cast<uint32_t>(power - half + 127) << 23;
    return p * __builtin_bit_cast(float, low) * __builtin_bit_cast(float, high);
  }
};

// The number is 2^e m with m between sqrt(1/2) and sqrt(2), and log2(m) by the series of atanh.
struct Lg2 {
  MC_INLINE static float of(float x) {
    const bool is_tiny = x < 0x1p-126F;
    const float y = is_tiny ? x * 0x1p23F : x;
    const uint32_t bits = __builtin_bit_cast(uint32_t, y);
    const int e = static_cast<int32_t>(bits - 0x3F3504F3) >> 23;
    const float m = __builtin_bit_cast(float, bits - (static_cast<uint32_t>(e) << 23));
    const float s = (m - 1) / (m + 1), q = s * s;
    float p = 0.320598898F;
    p = p * q + 0.412198583F;
    p = p * q + 0.577078016F;
    p = p * q + 0.961796694F;
    p = p * q + 2.885390082F;
    const float result = static_cast<float>(e) - (is_tiny ? 23.0F : 0.0F) + s * p;
    const float at_ends = x == 0 ? -__builtin_inff() : x > 0 ? x : __builtin_nanf("");
    return x > 0 && x < __builtin_inff() ? result : x != x ? x : at_ends;
  }
};

// ---- Rows of lanes.
template <class O, int kFtz, class T, class... More>
MC_INLINE T element(T a, More... more) {
  if constexpr (kFtz) return flush(O::of(flush(a), flush(more)...));
  return O::of(a, more...);
}

template <class T>
MC_INLINE T saturated(T x) {
  return x > T(0) ? (x < T(1) ? x : T(1)) : T(0);
}

template <class T, class O, int N, bool kFtz>
const Step* floats(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const T *a = w.at<T>(s->a), *b = w.at<T>(s->b), *c = w.at<T>(s->c);
  each_lane(w, w.at<T>(s->d), [&](int l) {
    if constexpr (N == 1) return element<O, kFtz>(a[l]);
    if constexpr (N == 2) return element<O, kFtz>(a[l], b[l]);
    if constexpr (N == 3) return element<O, kFtz>(a[l], b[l], c[l]);
  });
  return s + 1;
}

// With .ftz a GPU rounds with unbounded exponent and flushes a result below the least normal number
// to zero, even if subnormal numbers would round up to that number. An H100 gives 0 for
// mul.rn.ftz.f32 of 0.99999994 and 2^-126, and ptxas compiles cvt.ftz.f32.f64 to the same rule in
// each mode; other float32 operations were not yet observed on a GPU. The host has two modes that
// together are this rule; the barriers keep the arithmetic between the changes of the mode.
template <class O, int N>
const Step* flushed_floats(Warp& base, const Step* s) {
  constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZeros = 0x0040;
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(saved | kFlushToZero | kDenormalsAreZeros);
  asm volatile("" ::: "memory");
  const Step* next = floats<float, O, N, false>(base, s);
  asm volatile("" ::: "memory");
  _mm_setcsr(saved);
  return next;
}
template <class O>
constexpr bool kIsRounded =
    std::is_same_v<O, Add> || std::is_same_v<O, Sub> || std::is_same_v<O, Mul> ||
    std::is_same_v<O, Fma> || std::is_same_v<O, Div> || std::is_same_v<O, Rcp> ||
    std::is_same_v<O, Sqrt>;

template <class T>
const Step* saturate(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  T* d = w.at<T>(s->d);
  each_lane(w, d, [&](int l) { return saturated(d[l]); });
  return s + 1;
}

// Halves, K to a lane, computed in float; a product with a sum needs more bits to be rounded once.
constexpr uint32_t kFlush = 1, kSaturate = 2, kRelu = 4;

// Numbers below a limit become zeros.
MC_INLINE void flush_row(float* row, int count, float limit) {
  for (int k = 0; k < count; ++k) {
    row[k] = __builtin_fabsf(row[k]) < limit ? __builtin_copysignf(0.0F, row[k]) : row[k];
  }
}
// The limit of operands is the least normal number.
template <class T>
constexpr float kLeast = std::is_same_v<T, F16> ? 0x1p-14F : 0x1p-126F;
// The limit of results that are not rounded yet is the least number that rounds to that one, were
// there no least exponent. For an exact fma.rn.ftz.f16 of 2^-14 * (1 - 1.06 * 2^-12) an H100 gives
// 0, for one of 2^-14 * (1 - 2^-14) it gives 2^-14.
template <class T>
constexpr float kLeastRounded =
    kLeast<T> - kLeast<T> * (std::is_same_v<T, F16> ? 0x1p-12F : 0x1p-9F);

template <class O, int N>
MC_INLINE float half_element(float a, float b, float c) {
  if constexpr (N == 1) return O::of(a);
  if constexpr (N == 2) return O::of(a, b);
  if constexpr (N == 3) return sum_to_odd(double(a) * b, c);
}

template <class T, class O, int N, int K>
const Step* halves(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  constexpr int kCount = kLanes * K;
  alignas(32) float x[N][kCount], y[kCount];
  alignas(32) T result[kCount];
  const uint32_t offsets[3] = {s->a, s->b, s->c};
  for (int n = 0; n < N; ++n) {
    widen_row(w.at<T>(offsets[n]), x[n], kCount);
    if (s->flags & kFlush) flush_row(x[n], kCount, kLeast<T>);
  }
  for (int k = 0; k < kCount; ++k) {
    y[k] = half_element<O, N>(x[0][k], x[N > 1 ? 1 : 0][k], x[N > 2 ? 2 : 0][k]);
  }
  if (s->flags & kFlush) flush_row(y, kCount, kLeastRounded<T>);
  if (s->flags & kSaturate) {
    for (int k = 0; k < kCount; ++k) y[k] = saturated(y[k]);
  }
  if (s->flags & kRelu) {
    for (int k = 0; k < kCount; ++k) y[k] = rectified(y[k]);
  }
  narrow_row(y, result, kCount);
  using Lane = std::conditional_t<K == 1, uint16_t, uint32_t>;
  Lane lanes[kLanes];
  memcpy(lanes, result, sizeof lanes);
  each_lane(w, w.at<Lane>(s->d), [&](int l) { return lanes[l]; });
  return s + 1;
}

// Signs of halves are bits.
template <bool kNegate, int K>
const Step* half_sign(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  using Lane = std::conditional_t<K == 1, uint16_t, uint32_t>;
  constexpr Lane kSigns = static_cast<Lane>(0x80008000);
  const Lane* a = w.at<Lane>(s->a);
  const bool is_ftz = (s->flags & kFlush) != 0;
  each_lane(w, w.at<Lane>(s->d), [&](int l) {
    const uint32_t bits = a[l], low = flush_half(static_cast<uint16_t>(bits));
    const uint32_t high = flush_half(static_cast<uint16_t>(bits >> 16));
    const Lane x = static_cast<Lane>(is_ftz ? high << 16 | low : bits);
    return static_cast<Lane>(kNegate ? x ^ kSigns : x & static_cast<Lane>(~kSigns));
  });
  return s + 1;
}

// ---- The tables.
template <class O, int N>
Handler float_handler(const ArithmeticKey& key) {
  if (key.type == Type::kF64) return floats<double, O, N, false>;
  if (key.type != Type::kF32) return nullptr;
  if (!key.is_ftz) return floats<float, O, N, false>;
  if constexpr (kIsRounded<O>) return flushed_floats<O, N>;
  return floats<float, O, N, true>;
}

// Approximate operations exist only for floats.
template <class O, int N = 1>
Handler approximate_handler(const ArithmeticKey& key) {
  if (key.type != Type::kF32) return nullptr;
  return key.is_ftz ? floats<float, O, N, true> : floats<float, O, N, false>;
}

Handler find_float(const ArithmeticKey& key) {
  switch (key.op) {
    MC_ROW(Op::kAdd, float_handler<Add, 2>(key))
    MC_ROW(Op::kSub, float_handler<Sub, 2>(key))
    MC_ROW(Op::kMul, float_handler<Mul, 2>(key))
    case Op::kFma:
      MC_ROW(Op::kMad, float_handler<Fma, 3>(key))
      MC_ROW(Op::kDiv, float_handler<Div, 2>(key))
      MC_ROW(Op::kDivApprox, approximate_handler<DivApprox, 2>(key))
      MC_ROW(Op::kAbs, float_handler<Abs, 1>(key))
      MC_ROW(Op::kNeg, float_handler<Neg, 1>(key))
      MC_ROW(Op::kMin, float_handler<Min, 2>(key))
      MC_ROW(Op::kMax, float_handler<Max, 2>(key))
      MC_ROW(Op::kMinNan, float_handler<MinNan, 2>(key))
      MC_ROW(Op::kMaxNan, float_handler<MaxNan, 2>(key))
      MC_ROW(Op::kRcp, float_handler<Rcp, 1>(key))
      MC_ROW(Op::kSqrt, float_handler<Sqrt, 1>(key))
      MC_ROW(Op::kRsqrt, float_handler<Rsqrt, 1>(key))
      MC_ROW(Op::kCopysign, float_handler<CopySign, 2>(key))
      MC_ROW(Op::kEx2, approximate_handler<Ex2>(key))
      MC_ROW(Op::kLg2, approximate_handler<Lg2>(key))
      MC_ROW(Op::kSin, approximate_handler<Sin>(key))
      MC_ROW(Op::kCos, approximate_handler<Cos>(key))
      MC_ROW(Op::kTanh, approximate_handler<Tanh>(key))
    default:
      return nullptr;
  }
}

template <class T, int K>
Handler find_half(Op op) {
  switch (op) {
    MC_ROW(Op::kAdd, halves<T, Add, 2, K>)
    MC_ROW(Op::kSub, halves<T, Sub, 2, K>)
    MC_ROW(Op::kMul, halves<T, Mul, 2, K>)
    MC_ROW(Op::kFma, halves<T, Fma, 3, K>)
    MC_ROW(Op::kMin, halves<T, Min, 2, K>)
    MC_ROW(Op::kMax, halves<T, Max, 2, K>)
    MC_ROW(Op::kMinNan, halves<T, MinNan, 2, K>)
    MC_ROW(Op::kMaxNan, halves<T, MaxNan, 2, K>)
    MC_ROW(Op::kTanh, halves<T, Tanh, 1, K>)
    MC_ROW(Op::kEx2, halves<T, Ex2, 1, K>)
    MC_ROW(Op::kAbs, half_sign<false, K>)
    MC_ROW(Op::kNeg, half_sign<true, K>)
    default:
      return nullptr;
  }
}

}  // namespace

Handler find_arithmetic(const ArithmeticKey& key) {
  switch (key.type) {
    case Type::kF32:
      if (key.op == Op::kNone && key.is_saturated) return saturate<float>;
      if (key.compare != Compare::kNone || key.op == Op::kTestp) return find_compare(key);
      return find_float(key);
    case Type::kF64:
      if (key.op == Op::kNone && key.is_saturated) return saturate<double>;
      if (key.compare != Compare::kNone || key.op == Op::kTestp) return find_compare(key);
      return find_float(key);
      MC_ROW(Type::kF16,
             key.compare != Compare::kNone ? find_compare(key) : find_half<F16, 1>(key.op))
      MC_ROW(Type::kF16x2,
             key.compare != Compare::kNone ? find_compare(key) : find_half<F16, 2>(key.op))
      MC_ROW(Type::kBf16,
             key.compare != Compare::kNone ? find_compare(key) : find_half<Bf16, 1>(key.op))
      MC_ROW(Type::kBf16x2,
             key.compare != Compare::kNone ? find_compare(key) : find_half<Bf16, 2>(key.op))
    default:
      return key.compare != Compare::kNone ? find_compare(key) : find_integer(key);
  }
}

}  // namespace mc::ptx::MC_PTX_VARIANT
