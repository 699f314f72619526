// SPDX-License-Identifier: Apache-2.0
//
// Comparisons: setp, set, testp.
#include "ptx/halves.h"
#include "ptx/lanes.h"

namespace mc::ptx::MC_PTX_VARIANT {
namespace {

// The relation of two numbers: ordered ones are false where one is a NaN, the others true.
template <Compare C, class T>
MC_INLINE bool holds(T a, T b) {
  if constexpr (C == Compare::kEq) return a == b;
  if constexpr (C == Compare::kNe) return std::is_integral_v<T> ? a != b : (a < b || a > b);
  if constexpr (C == Compare::kLt) return a < b;
  if constexpr (C == Compare::kLe) return a <= b;
  if constexpr (C == Compare::kGt) return a > b;
  if constexpr (C == Compare::kGe) return a >= b;
  if constexpr (C == Compare::kEqu) return !(a < b) && !(a > b);
  if constexpr (C == Compare::kNeu) return a != b;
  if constexpr (C == Compare::kLtu) return !(a >= b);
  if constexpr (C == Compare::kLeu) return !(a > b);
  if constexpr (C == Compare::kGtu) return !(a <= b);
  if constexpr (C == Compare::kGeu) return !(a < b);
  if constexpr (C == Compare::kNum) return a == a && b == b;
  if constexpr (C == Compare::kNan) return a != a || b != b;
}

template <bool kFtz>
MC_INLINE float operand(float x) {
  return kFtz && __builtin_fabsf(x) < 0x1p-126F ? 0.0F : x;
}

// The flag of comparisons of halves that take subnormal numbers for zeros.
constexpr uint32_t kFlushed = 8;

// A row of halves as floats; subnormal ones are zeros where the step flushes.
template <class T>
MC_INLINE void half_operands(LaneWarp& w, const Step* s, uint32_t place, float* to, int count) {
  widen_row(w.at<T>(place), to, count);
  if ((s->flags & kFlushed) == 0) return;
  for (int k = 0; k < count; ++k) to[k] = __builtin_fabsf(to[k]) < 0x1p-14F ? 0 : to[k];
}

// The result, combined with a third predicate as the immediate says: 0 alone, 1 and, 2 or, 3 xor.
MC_INLINE void combine(LaneWarp& w, const Step* s, Mask yes) {
  Mask no = ~yes;
  if (s->immediate != 0) {
    const Mask third = predicate(w, s, s->c, kNegated);
    yes = s->immediate == 1 ? yes & third : s->immediate == 2 ? yes | third : yes ^ third;
    no = s->immediate == 1 ? no & third : s->immediate == 2 ? no | third : no ^ third;
  }
  if (s->d != 0) set_predicate(w, s->d, yes);
  if (s->e != 0) set_predicate(w, s->e, no);
}

template <class T, Compare C, bool kFtz>
const Step* compare(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  alignas(32) int32_t t[kLanes];
  if constexpr (kIsHalf<T>) {
    alignas(32) float a[kLanes], b[kLanes];
    half_operands<T>(w, s, s->a, a, kLanes);
    half_operands<T>(w, s, s->b, b, kLanes);
    MC_LANES t[l] = holds<C>(a[l], b[l]) ? -1 : 0;
  } else if constexpr (kFtz) {
    const T *a = w.at<T>(s->a), *b = w.at<T>(s->b);
    MC_LANES t[l] = holds<C>(operand<true>(a[l]), operand<true>(b[l])) ? -1 : 0;
  } else {
    const T *a = w.at<T>(s->a), *b = w.at<T>(s->b);
    MC_LANES t[l] = holds<C>(a[l], b[l]) ? -1 : 0;
  }
  combine(w, s, mask_of(t));
  return s + 1;
}

// Pairs of halves have two results.
template <class T, Compare C>
const Step* compare_pairs(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  alignas(32) float a[2 * kLanes], b[2 * kLanes];
  alignas(32) int32_t t[kLanes];
  half_operands<T>(w, s, s->a, a, 2 * kLanes);
  half_operands<T>(w, s, s->b, b, 2 * kLanes);
  Mask results[2];
  for (int k = 0; k < 2; ++k) {
    MC_LANES t[l] = holds<C>(a[2 * l + k], b[2 * l + k]) ? -1 : 0;
    results[k] = mask_of(t);
    if (s->immediate == 0) continue;
    const Mask third = predicate(w, s, s->c, kNegated);
    results[k] = s->immediate == 1   ? results[k] & third
                 : s->immediate == 2 ? results[k] | third
                                     : results[k] ^ third;
  }
  if (s->d != 0) set_predicate(w, s->d, results[0]);
  if (s->e != 0) set_predicate(w, s->e, results[1]);
  return s + 1;
}

// Zeros are normal. The immediate of testp is 0 finite, 1 infinite, 2 number, 3 notanumber, 4
// normal, 5 subnormal.
template <class T>
const Step* test(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const T* a = w.at<T>(s->a);
  constexpr T kLeast = sizeof(T) == 4 ? T(0x1p-126) : T(0x1p-1022);
  const T infinity = static_cast<T>(__builtin_inf());
  Mask result = 0;
  for (int l = 0; l < kLanes; ++l) {
    const T x = a[l] < 0 ? -a[l] : a[l];
    const bool is_finite = x < infinity, is_subnormal = x > 0 && x < kLeast;
    const bool facts[] = {is_finite,   x == infinity, x == x, x != x, is_finite && !is_subnormal,
                          is_subnormal};
    if (facts[s->immediate]) result |= bit(l);
  }
  set_predicate(w, s->d, result);
  return s + 1;
}

template <class T, bool kFtz>
Handler with_compare(Compare compare_by) {
  switch (compare_by) {
#define MC_COMPARE(name) \
  case Compare::name:    \
    return compare<T, Compare::name, kFtz>;
    MC_COMPARE(kEq)
    MC_COMPARE(kNe)
    MC_COMPARE(kLt)
    MC_COMPARE(kLe)
    MC_COMPARE(kGt)
    MC_COMPARE(kGe)
    default:
      break;
  }
  if constexpr (!std::is_integral_v<T>) {
    switch (compare_by) {
      MC_COMPARE(kEqu)
      MC_COMPARE(kNeu)
      MC_COMPARE(kLtu)
      MC_COMPARE(kLeu)
      MC_COMPARE(kGtu)
      MC_COMPARE(kGeu)
      MC_COMPARE(kNum)
      MC_COMPARE(kNan)
#undef MC_COMPARE
      default:
        break;
    }
  }
  return nullptr;
}

template <class T>
Handler with_compare_pairs(Compare compare_by) {
  switch (compare_by) {
#define MC_COMPARE(name) \
  case Compare::name:    \
    return compare_pairs<T, Compare::name>;
    MC_COMPARE(kEq)
    MC_COMPARE(kNe)
    MC_COMPARE(kLt)
    MC_COMPARE(kLe)
    MC_COMPARE(kGt)
    MC_COMPARE(kGe)
    MC_COMPARE(kEqu)
    MC_COMPARE(kNeu)
    MC_COMPARE(kLtu)
    MC_COMPARE(kLeu)
    MC_COMPARE(kGtu)
    MC_COMPARE(kGeu)
    MC_COMPARE(kNum)
    MC_COMPARE(kNan)
#undef MC_COMPARE
    default:
      return nullptr;
  }
}

}  // namespace

Handler find_compare(const ArithmeticKey& key) {
  if (key.op == Op::kTestp) return key.type == Type::kF64 ? test<double> : test<float>;
  switch (key.type) {
    case Type::kU16:
      MC_ROW(Type::kB16, with_compare<uint16_t, false>(key.compare))
      MC_ROW(Type::kS16, with_compare<int16_t, false>(key.compare))
    case Type::kU32:
      MC_ROW(Type::kB32, with_compare<uint32_t, false>(key.compare))
      MC_ROW(Type::kS32, with_compare<int32_t, false>(key.compare))
    case Type::kU64:
      MC_ROW(Type::kB64, with_compare<uint64_t, false>(key.compare))
      MC_ROW(Type::kS64, with_compare<int64_t, false>(key.compare))
      MC_ROW(Type::kF32, key.is_ftz ? with_compare<float, true>(key.compare)
                                    : with_compare<float, false>(key.compare))
      MC_ROW(Type::kF64, with_compare<double, false>(key.compare))
      MC_ROW(Type::kF16, with_compare<F16, false>(key.compare))
      MC_ROW(Type::kBf16, with_compare<Bf16, false>(key.compare))
      MC_ROW(Type::kF16x2, with_compare_pairs<F16>(key.compare))
      MC_ROW(Type::kBf16x2, with_compare_pairs<Bf16>(key.compare))
    default:
      return nullptr;
  }
}

}  // namespace mc::ptx::MC_PTX_VARIANT
