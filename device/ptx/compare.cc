// SPDX-License-Identifier: Apache-2.0
//
// Comparisons: setp, set, testp.
#include <utility>

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

template <bool kFtz, class T>
MC_INLINE T operand(T x) {
  if constexpr (kFtz) return __builtin_fabsf(x) < 0x1p-126F ? 0.0F : x;
  return x;
}

// The flag of half comparisons that treat subnormal numbers as zeros.
constexpr uint32_t kFlushed = 8;

// A row of halves as floats; if the step flushes, subnormal numbers are zeros.
template <class T>
MC_INLINE void half_operands(LaneWarp& w, const Step* s, uint32_t offset, float* to, int count) {
  widen_row(w.at<T>(offset), to, count);
  if ((s->flags & kFlushed) == 0) return;
  for (int k = 0; k < count; ++k) to[k] = __builtin_fabsf(to[k]) < 0x1p-14F ? 0 : to[k];
}

// A result, combined with a third predicate by the immediate: 0 not at all, 1 and, 2 or, 3 xor.
MC_INLINE Mask combined(LaneWarp& w, const Step* s, Mask holds) {
  if (s->immediate == 0) return holds;
  const Mask third = predicate(w, s, s->c, kNegated);
  return s->immediate == 1 ? holds & third : s->immediate == 2 ? holds | third : holds ^ third;
}

// K elements per lane. If K is 1, the second result is the negation of the first.
template <class T, Compare C, bool kFtz, int K>
const Step* compare(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  alignas(32) int32_t t[kLanes];
  Mask results[2];
  if constexpr (kIsHalf<T>) {
    alignas(32) float a[K * kLanes], b[K * kLanes];
    half_operands<T>(w, s, s->a, a, K * kLanes);
    half_operands<T>(w, s, s->b, b, K * kLanes);
    for (int k = 0; k < K; ++k) {
      MC_LANES t[l] = holds<C>(a[K * l + k], b[K * l + k]) ? -1 : 0;
      results[k] = mask_of(t);
    }
  } else {
    const T *a = w.at<T>(s->a), *b = w.at<T>(s->b);
    MC_LANES t[l] = holds<C>(operand<kFtz>(a[l]), operand<kFtz>(b[l])) ? -1 : 0;
    results[0] = mask_of(t);
  }
  if constexpr (K == 1) results[1] = ~results[0];
  for (Mask& result : results) result = combined(w, s, result);
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

// Integers have no unordered comparisons.
template <class T, Compare C, bool kFtz, int K>
constexpr Handler handler_of() {
  if constexpr (C == Compare::kNone || (std::is_integral_v<T> && C > Compare::kGe)) {
    return nullptr;
  } else {
    return compare<T, C, kFtz, K>;
  }
}

template <class T, bool kFtz, int K, size_t... C>
Handler find_in(Compare compare_by, std::index_sequence<C...>) {
  constexpr Handler kHandlers[] = {handler_of<T, static_cast<Compare>(C), kFtz, K>()...};
  return kHandlers[static_cast<size_t>(compare_by)];
}

template <class T, bool kFtz = false, int K = 1>
Handler with_compare(Compare compare_by) {
  constexpr size_t kCompares = static_cast<size_t>(Compare::kNan) + 1;
  return find_in<T, kFtz, K>(compare_by, std::make_index_sequence<kCompares>());
}

}  // namespace

Handler find_compare(const ArithmeticKey& key) {
  if (key.op == Op::kTestp) return key.type == Type::kF64 ? test<double> : test<float>;
  switch (key.type) {
    case Type::kU16:
      MC_ROW(Type::kB16, with_compare<uint16_t>(key.compare))
      MC_ROW(Type::kS16, with_compare<int16_t>(key.compare))
    case Type::kU32:
      MC_ROW(Type::kB32, with_compare<uint32_t>(key.compare))
      MC_ROW(Type::kS32, with_compare<int32_t>(key.compare))
    case Type::kU64:
      MC_ROW(Type::kB64, with_compare<uint64_t>(key.compare))
      MC_ROW(Type::kS64, with_compare<int64_t>(key.compare))
      MC_ROW(Type::kF32,
             key.is_ftz ? with_compare<float, true>(key.compare) : with_compare<float>(key.compare))
      MC_ROW(Type::kF64, with_compare<double>(key.compare))
      MC_ROW(Type::kF16, with_compare<F16>(key.compare))
      MC_ROW(Type::kBf16, with_compare<Bf16>(key.compare))
      MC_ROW(Type::kF16x2, with_compare<F16, false, 2>(key.compare))
      MC_ROW(Type::kBf16x2, with_compare<Bf16, false, 2>(key.compare))
    default:
      return nullptr;
  }
}

}  // namespace mc::ptx::MC_PTX_VARIANT
