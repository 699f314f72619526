// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic of integers, moves and choices by predicates. Sums wrap: built with -fwrapv.
#include "ptx/halves.h"
#include "ptx/lanes.h"

namespace mc::ptx::MC_PTX_VARIANT {
namespace {

template <class T>
using Wide =
    std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
                       std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
__extension__ using Signed128 = __int128;
__extension__ using Unsigned128 = unsigned __int128;
template <class T>
using Wider =
    std::conditional_t<sizeof(T) == 8,
                       std::conditional_t<std::is_signed_v<T>, Signed128, Unsigned128>, Wide<T>>;
template <class T>
constexpr uint32_t kBits = 8 * sizeof(T);

MC_ELEMENT(Mov, (T a), a)
MC_ELEMENT(Add, (T a, T b), a + b)
MC_ELEMENT(Sub, (T a, T b), a - b)
struct Mul {
  template <class T>
  MC_INLINE static T of(T a, T b) {
    if constexpr (sizeof(T) == 2) return static_cast<T>(uint32_t(a) * uint32_t(b));
    return static_cast<T>(a * b);
  }
};
MC_ELEMENT(MulHi, (T a, T b), Wider<T>(a) * Wider<T>(b) >> kBits<T>)
// The 48 bits of a product of the low 24 bits of words, of which results take bits 0 to 31 or 16 to
// 47.
template <class T>
MC_INLINE Wide<T> product_24(T a, T b) {
  return Wide<T>(static_cast<T>(a << 8) >> 8) * Wide<T>(static_cast<T>(b << 8) >> 8);
}
MC_ELEMENT(Mul24, (T a, T b), product_24(a, b))
MC_ELEMENT(Mul24Hi, (T a, T b), product_24(a, b) >> 16)
MC_ELEMENT(Mad24, (T a, T b, T c), product_24(a, b) + c)
MC_ELEMENT(Mad24Hi, (T a, T b, T c), (product_24(a, b) >> 16) + c)
MC_ELEMENT(Mad, (T a, T b, T c), Mul::of(a, b) + c)
MC_ELEMENT(MadHi, (T a, T b, T c), MulHi::of(a, b) + c)
MC_ELEMENT(Sad, (T a, T b, T c), c + (a < b ? b - a : a - b))
// GPUs do not trap: a quotient by zero has all bits, its remainder is the dividend.
struct Div {
  template <class T>
  MC_INLINE static T of(T a, T b) {
    if (b == 0) return static_cast<T>(-1);
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(0 - a);
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <class T>
  MC_INLINE static T of(T a, T b) {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
  }
};
// Exact 64-bit results of word operations, for .sat.
MC_ELEMENT(AddExact, (T a, T b, T), a + b)
MC_ELEMENT(SubExact, (T a, T b, T), a - b)
MC_ELEMENT(MadHiExact, (T a, T b, T c), (a * b >> 32) + c)
MC_ELEMENT(Mad24HiExact, (T a, T b, T c), ((a << 40 >> 40) * (b << 40 >> 40) >> 16) + c)
MC_ELEMENT(Abs, (T a), a < 0 ? 0 - a : a)
MC_ELEMENT(Neg, (T a), 0 - a)
MC_ELEMENT(Min, (T a, T b), a < b ? a : b)
MC_ELEMENT(Max, (T a, T b), a > b ? a : b)
MC_ELEMENT(And, (T a, T b), (a & b))
MC_ELEMENT(Or, (T a, T b), a | b)
MC_ELEMENT(Xor, (T a, T b), a ^ b)
MC_ELEMENT(Not, (T a), ~a)
MC_ELEMENT(Cnot, (T a), a == 0 ? 1 : 0)
// Amounts of shifts have 32 bits whatever the type; too large ones shift all out.
MC_ELEMENT(Shl, (T a, uint32_t n), n >= kBits<T> ? T(0) : static_cast<T>(a << (n & (kBits<T> - 1))))
struct Shr {
  template <class T>
  MC_INLINE static T of(T a, uint32_t n) {
    const uint32_t most = n >= kBits<T> ? kBits<T> - 1 : n;
    const T shifted = static_cast<T>(a >> most);
    return !std::is_signed_v<T> && n >= kBits<T> ? T(0) : shifted;
  }
};
struct Popc {
  template <class T>
  MC_INLINE static uint32_t of(T a) {
    return static_cast<uint32_t>(__builtin_popcountll(std::make_unsigned_t<T>(a)));
  }
};
struct Clz {
  template <class T>
  MC_INLINE static uint32_t of(T a) {
    if (a == 0) return kBits<T>;
    return static_cast<uint32_t>(__builtin_clzll(std::make_unsigned_t<T>(a))) - (64 - kBits<T>);
  }
};

// ---- Rows of lanes. D is the result's type, S the operands'.
template <class D, class S, class O, int N>
const Step* integers(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const S *a = w.at<S>(s->a), *b = w.at<S>(s->b), *c = w.at<S>(s->c);
  each_lane(w, w.at<D>(s->d), [&](int l) -> D {
    if constexpr (N == 1) return O::of(a[l]);
    if constexpr (N == 2) return O::of(a[l], b[l]);
    if constexpr (N == 3) return O::of(a[l], b[l], c[l]);
  });
  return s + 1;
}

template <class T, class O>
const Step* shift(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const T* a = w.at<T>(s->a);
  const uint32_t* n = w.at<uint32_t>(s->b);
  each_lane(w, w.at<T>(s->d), [&](int l) { return O::of(a[l], n[l]); });
  return s + 1;
}

template <class T, bool kAdds>
const Step* wide_product(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  using D = Wide<T>;
  const T *a = w.at<T>(s->a), *b = w.at<T>(s->b);
  const D* c = w.at<D>(s->c);
  each_lane(w, w.at<D>(s->d), [&](int l) { return D(a[l]) * D(b[l]) + (kAdds ? c[l] : 0); });
  return s + 1;
}

template <class O>
const Step* saturated(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const int32_t *a = w.at<int32_t>(s->a), *b = w.at<int32_t>(s->b), *c = w.at<int32_t>(s->c);
  each_lane(w, w.at<int32_t>(s->d), [&](int l) -> int32_t {
    const int64_t exact = O::of(int64_t{a[l]}, int64_t{b[l]}, int64_t{c[l]});
    return static_cast<int32_t>(exact < INT32_MIN   ? INT32_MIN
                                : exact > INT32_MAX ? INT32_MAX
                                                    : exact);
  });
  return s + 1;
}

template <class T>
const Step* choose(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const T *a = w.at<T>(s->a), *b = w.at<T>(s->b);
  const Mask mask = predicate(w, s, s->c, kNegated);
  each_lane(w, w.at<T>(s->d), [&](int l) { return mask >> l & 1 ? a[l] : b[l]; });
  return s + 1;
}

// The choice of slct: a where c >= 0. The flags are 1 where c is a float, and 2 where its subnormal
// numbers are zeros.
template <class T>
const Step* choose_by_sign(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const T *a = w.at<T>(s->a), *b = w.at<T>(s->b);
  const int32_t* c = w.at<int32_t>(s->c);
  const float* f = w.at<float>(s->c);
  const bool is_float = (s->flags & 1) != 0, is_ftz = (s->flags & 2) != 0;
  each_lane(w, w.at<T>(s->d), [&](int l) {
    const bool is_positive = is_ftz ? f[l] > -0x1p-126F : f[l] >= 0;
    const bool takes_first = is_float ? is_positive : c[l] >= 0;
    return takes_first ? a[l] : b[l];
  });
  return s + 1;
}

// The position of the highest non-sign bit (bfind), or the shift that moves it to the top.
template <class T>
const Step* find_bit(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const T* a = w.at<T>(s->a);
  const bool as_shift = s->flags != 0;
  each_lane(w, w.at<uint32_t>(s->d), [&](int l) -> uint32_t {
    const T bits = std::is_signed_v<T> && a[l] < 0 ? static_cast<T>(~a[l]) : a[l];
    const uint32_t zeros = Clz::of(bits);
    if (zeros == kBits<T>) return 0xFFFFFFFF;
    return as_shift ? zeros : kBits<T> - 1 - zeros;
  });
  return s + 1;
}

template <class T>
Handler find_moves(const ArithmeticKey& key) {
  if (key.op == Op::kMov) return integers<T, T, Mov, 1>;
  if (key.op == Op::kSelp) return choose<T>;
  if (key.op == Op::kSlct) return choose_by_sign<T>;
  return nullptr;
}

template <class T>
Handler find_signed(const ArithmeticKey& key) {
  switch (key.op) {
    MC_ROW(Op::kMulHi, integers<T, T, MulHi, 2>)
    case Op::kMulWide:
      if constexpr (sizeof(T) < 8) return wide_product<T, false>;
      return nullptr;
    case Op::kMadWide:
      if constexpr (sizeof(T) < 8) return wide_product<T, true>;
      return nullptr;
      MC_ROW(Op::kMadHi, integers<T, T, MadHi, 3>)
      MC_ROW(Op::kMul24, sizeof(T) == 4 ? integers<T, T, Mul24, 2> : nullptr)
      MC_ROW(Op::kMul24Hi, sizeof(T) == 4 ? integers<T, T, Mul24Hi, 2> : nullptr)
      MC_ROW(Op::kMad24, sizeof(T) == 4 ? integers<T, T, Mad24, 3> : nullptr)
      MC_ROW(Op::kMad24Hi, sizeof(T) == 4 ? integers<T, T, Mad24Hi, 3> : nullptr)
      MC_ROW(Op::kDiv, integers<T, T, Div, 2>)
      MC_ROW(Op::kRem, integers<T, T, Rem, 2>)
      MC_ROW(Op::kMin, integers<T, T, Min, 2>)
      MC_ROW(Op::kMax, integers<T, T, Max, 2>)
      MC_ROW(Op::kAbs, std::is_signed_v<T> ? integers<T, T, Abs, 1> : nullptr)
      MC_ROW(Op::kShr, shift<T, Shr>)
      MC_ROW(Op::kSad, integers<T, T, Sad, 3>)
      MC_ROW(Op::kBfind, sizeof(T) >= 4 ? find_bit<T> : nullptr)
    default:
      return nullptr;
  }
}

// Operations that do not depend on the sign.
template <class T>
Handler find_unsigned(const ArithmeticKey& key) {
  switch (key.op) {
    MC_ROW(Op::kAdd, integers<T, T, Add, 2>)
    MC_ROW(Op::kSub, integers<T, T, Sub, 2>)
    MC_ROW(Op::kMul, integers<T, T, Mul, 2>)
    MC_ROW(Op::kMad, integers<T, T, Mad, 3>)
    MC_ROW(Op::kNeg, integers<T, T, Neg, 1>)
    MC_ROW(Op::kAnd, integers<T, T, And, 2>)
    MC_ROW(Op::kOr, integers<T, T, Or, 2>)
    MC_ROW(Op::kXor, integers<T, T, Xor, 2>)
    MC_ROW(Op::kNot, integers<T, T, Not, 1>)
    MC_ROW(Op::kCnot, integers<T, T, Cnot, 1>)
    MC_ROW(Op::kShl, shift<T, Shl>)
    MC_ROW(Op::kPopc, integers<uint32_t, T, Popc, 1>)
    MC_ROW(Op::kClz, integers<uint32_t, T, Clz, 1>)
    default:
      return find_moves<T>(key);
  }
}

// Only signed words saturate.
Handler find_saturated(Op op) {
  switch (op) {
    MC_ROW(Op::kAdd, saturated<AddExact>)
    MC_ROW(Op::kSub, saturated<SubExact>)
    MC_ROW(Op::kMadHi, saturated<MadHiExact>)
    MC_ROW(Op::kMad24Hi, saturated<Mad24HiExact>)
    default:
      return nullptr;
  }
}

template <class T>
Handler find_in(const ArithmeticKey& key) {
  if (key.is_saturated) return std::is_same_v<T, int32_t> ? find_saturated(key.op) : nullptr;
  if (const Handler handler = find_unsigned<std::make_unsigned_t<T>>(key)) return handler;
  return find_signed<T>(key);
}

}  // namespace

Handler find_integer(const ArithmeticKey& key) {
  if (const Handler handler = find_bits(key)) return handler;
  switch (key.type) {
    case Type::kU16:
      MC_ROW(Type::kB16, find_in<uint16_t>(key))
      MC_ROW(Type::kS16, find_in<int16_t>(key))
    case Type::kU32:
      MC_ROW(Type::kB32, find_in<uint32_t>(key))
      MC_ROW(Type::kS32, find_in<int32_t>(key))
    case Type::kU64:
      MC_ROW(Type::kB64, find_in<uint64_t>(key))
      MC_ROW(Type::kS64, find_in<int64_t>(key))
    default:
      return nullptr;
  }
}

}  // namespace mc::ptx::MC_PTX_VARIANT
