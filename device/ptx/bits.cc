// SPDX-License-Identifier: Apache-2.0
//
// Operations on the bits of words, predicates, packing, carries.
#include "ptx/halves.h"
#include "ptx/lanes.h"

namespace mc::ptx::MC_PTX_VARIANT {
namespace {

template <class F>
MC_INLINE const Step* words(Warp& base, const Step* s, F f) {
  LaneWarp& w = lanes_of(base);
  const uint32_t *a = w.at<uint32_t>(s->a), *b = w.at<uint32_t>(s->b), *c = w.at<uint32_t>(s->c);
  each_lane(w, w.at<uint32_t>(s->d), [&](int l) { return f(a[l], b[l], c[l]); });
  return s + 1;
}

// The immediate is the table of truth.
const Step* lop3(Warp& base, const Step* s) {
  uint32_t t[8];
  for (int k = 0; k < 8; ++k) t[k] = s->immediate >> k & 1 ? 0xFFFFFFFF : 0;
  return words(base, s, [&](uint32_t a, uint32_t b, uint32_t c) {
    return (t[7] & a & b & c) | (t[6] & a & b & ~c) | (t[5] & a & ~b & c) | (t[4] & a & ~b & ~c) |
           (t[3] & ~a & b & c) | (t[2] & ~a & b & ~c) | (t[1] & ~a & ~b & c) |
           (t[0] & ~a & ~b & ~c);
  });
}

// Modes of prmt pick bytes by the low two bits of c: rows of selectors for each.
constexpr uint32_t kPermutations[6][4] = {
    {0x3210, 0x4321, 0x5432, 0x6543},  // Mode f4e.
    {0x5670, 0x6701, 0x7012, 0x0123},  // Mode b4e.
    {0x0000, 0x1111, 0x2222, 0x3333},  // Mode rc8.
    {0x3210, 0x3211, 0x3222, 0x3333},  // Mode ecl.
    {0x0000, 0x1110, 0x2210, 0x3210},  // Mode ecr.
    {0x1010, 0x3232, 0x1010, 0x3232},  // Mode rc16.
};

MC_INLINE uint32_t permuted(uint32_t a, uint32_t b, uint32_t selectors) {
  const uint64_t bytes = uint64_t{b} << 32 | a;
  uint32_t result = 0;
  for (uint32_t k = 0; k < 4; ++k) {
    const uint32_t selector = selectors >> (4 * k);
    const uint32_t byte = static_cast<uint32_t>(bytes >> (8 * (selector & 7))) & 0xFF;
    const uint32_t sign = byte & 0x80 ? 0xFF : 0;
    result |= (selector & 8 ? sign : byte) << (8 * k);
  }
  return result;
}

const Step* prmt(Warp& base, const Step* s) {
  if (s->flags == 0) return words(base, s, permuted);
  const uint32_t* rows = kPermutations[s->flags - 1];
  return words(base, s,
               [&](uint32_t a, uint32_t b, uint32_t c) { return permuted(a, b, rows[c & 3]); });
}

// For 32-bit values a GPU uses the low eight bits of a field's position and length, for 64-bit
// values all bits.
template <class T>
constexpr uint32_t kFieldMask = sizeof(T) == 8 ? ~uint32_t{0} : 255;

template <class T>
MC_INLINE T extracted(T a, uint32_t position, uint32_t length) {
  constexpr uint32_t kBits = 8 * sizeof(T);
  const uint32_t at = position & kFieldMask<T>, n = length & kFieldMask<T>;
  if (n == 0) return 0;
  const T moved = static_cast<T>(a >> (at < kBits ? at : kBits - 1));
  const T shifted = at < kBits || std::is_signed_v<T> ? moved : T(0);
  if (n >= kBits) return shifted;
  using U = std::make_unsigned_t<T>;
  const T top = static_cast<T>(static_cast<U>(shifted) << (kBits - n));
  return static_cast<T>(top >> (kBits - n));
}

template <class T>
const Step* bfe(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const T* a = w.at<T>(s->a);
  const uint32_t *b = w.at<uint32_t>(s->b), *c = w.at<uint32_t>(s->c);
  each_lane(w, w.at<T>(s->d), [&](int l) { return extracted(a[l], b[l], c[l]); });
  return s + 1;
}

// Inserts the low e bits of a into b, at bit c.
template <class T>
const Step* bfi(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  constexpr uint32_t kBits = 8 * sizeof(T);
  const T *a = w.at<T>(s->a), *b = w.at<T>(s->b);
  const uint32_t *c = w.at<uint32_t>(s->c), *e = w.at<uint32_t>(s->e);
  each_lane(w, w.at<T>(s->d), [&](int l) -> T {
    const uint32_t at = c[l] & kFieldMask<T>, n = e[l] & kFieldMask<T>;
    const T ones = n >= kBits ? ~T(0) : static_cast<T>((T(1) << (n & (kBits - 1))) - 1);
    const T mask = at >= kBits ? T(0) : static_cast<T>(ones << (at & (kBits - 1)));
    return (b[l] & ~mask) | (static_cast<T>(a[l] << (at & (kBits - 1))) & mask);
  });
  return s + 1;
}

// A mask of b ones from bit a on. Flag 1 clamps both to 32; without it they wrap.
const Step* mask(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const bool clamps = s->flags & 1;
  const uint32_t *a = w.at<uint32_t>(s->a), *b = w.at<uint32_t>(s->b);
  each_lane(w, w.at<uint32_t>(s->d), [&](int l) {
    const uint32_t at = clamps ? std::min(a[l], 32U) : a[l] & 31;
    const uint32_t end = at + (clamps ? std::min(b[l], 32U) : b[l] & 31);
    const auto from = [](uint32_t bit) { return static_cast<uint32_t>(~uint64_t{0} << bit); };
    return from(at) & ~(end >= 32 ? 0 : from(end));
  });
  return s + 1;
}

// The flags: 1 to the right, 2 clamps the amount.
const Step* funnel(Warp& base, const Step* s) {
  const bool right = s->flags & 1, clamps = s->flags & 2;
  return words(base, s, [&](uint32_t a, uint32_t b, uint32_t c) {
    const uint32_t n = clamps ? (c > 32 ? 32 : c) : c & 31;
    const uint64_t both = uint64_t{b} << 32 | a;
    return static_cast<uint32_t>(right ? both >> n : both << n >> 32);
  });
}

template <class T>
const Step* reverse(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const T* a = w.at<T>(s->a);
  each_lane(w, w.at<T>(s->d), [&](int l) {
    T x = 0;
    for (uint32_t k = 0; k < 8 * sizeof(T); ++k) x = static_cast<T>(x << 1 | (a[l] >> k & 1));
    return x;
  });
  return s + 1;
}

// The flags: 1 and 2 say that a and b are signed; 4 takes the upper half of b (dp2a).
template <int kParts>
const Step* dot(Warp& base, const Step* s) {
  const uint32_t flags = s->flags;
  auto part = [](uint32_t word, int k, int bits, bool is_signed) {
    const uint32_t raw = word >> (bits * k) & ((1U << bits) - 1);
    const int32_t sign = is_signed && raw >> (bits - 1) ? 1 << bits : 0;
    return static_cast<int32_t>(raw) - sign;
  };
  return words(base, s, [&](uint32_t a, uint32_t b, uint32_t c) {
    int32_t sum = static_cast<int32_t>(c);
    for (int k = 0; k < kParts; ++k) {
      const int other = kParts == 2 && (flags & 4) ? k + 2 : k;
      sum += part(a, k, kParts == 4 ? 8 : 16, flags & 1) * part(b, other, 8, flags & 2);
    }
    return static_cast<uint32_t>(sum);
  });
}

// Sums with carries. b and a as in the instruction, c the third operand, e the row of carries.
// The flags: 1 takes the carry, 2 sets it, 4 is a difference; 8 a product's low, 16 its high part.
template <class T>
const Step* carry(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  __extension__ using Wide = unsigned __int128;
  const T *a = w.at<T>(s->a), *b = w.at<T>(s->b), *c = w.at<T>(s->c);
  T* d = w.at<T>(s->d);
  uint32_t* carries = w.at<uint32_t>(s->e);
  const uint32_t flags = s->flags;
  constexpr uint32_t kBits = 8 * sizeof(T);
  for (int l = 0; l < kLanes; ++l) {
    if (!has(w.active, l)) continue;
    const bool is_signed_product = s->immediate != 0;
    const T low = static_cast<T>(a[l] * b[l]);
    T high = static_cast<T>(Wide{a[l]} * b[l] >> kBits);
    if (is_signed_product) {
      high -= a[l] >> (kBits - 1) ? b[l] : 0;
      high -= b[l] >> (kBits - 1) ? a[l] : 0;
    }
    const bool is_product = flags & 24;
    const T x = !is_product ? a[l] : flags & 16 ? high : low, y = is_product ? c[l] : b[l];
    const Wide in = flags & 1 ? carries[l] & 1 : 0;
    const Wide sum = flags & 4 ? Wide{x} - y - in : Wide{x} + y + in;
    d[l] = static_cast<T>(sum);
    if (flags & 2) carries[l] = static_cast<uint32_t>(sum >> kBits & 1);
  }
  return s + 1;
}

// ---- Predicates. The immediate: 0 and, 1 or, 2 xor.
const Step* predicates(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const Mask a = predicate(w, s, s->a, kNegated), b = predicate(w, s, s->b, kNegatedSecond);
  set_predicate(w, s->d, s->immediate == 0 ? a & b : s->immediate == 1 ? a | b : a ^ b);
  return s + 1;
}

// Parts of c bytes make a whole of b bytes at d, or with the flag the whole gives the parts.
const Step* pack(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const uint32_t part = s->c, parts = s->b / s->c;
  for (uint32_t k = 0; k < parts; ++k) {
    uint8_t *row = w.frame + s->list[k], *whole = w.frame + s->d + k * part;
    for (uint32_t l = 0; l < kLanes; ++l) {
      if (!has(w.active, static_cast<int>(l))) continue;
      if (s->flags != 0) {
        memcpy(row + l * part, whole + l * s->b, part);
      } else {
        memcpy(whole + l * s->b, row + l * part, part);
      }
    }
  }
  return s + 1;
}

// Two floats become a pair of halves, a the upper one. The flags: 1 bf16, 2 relu; the immediate is
// the rounding. With flag 4 one float becomes tf32. That keeps the upper bits of a NaN, as GPUs do,
// so that 0x7F800001 becomes an infinity.
const Step* convert_pack(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const float *a = w.at<float>(s->a), *b = w.at<float>(s->b);
  const uint32_t flags = s->flags;
  const Rounding rounding = static_cast<Rounding>(s->immediate);
  if (flags & 4) {
    each_lane(w, w.at<uint32_t>(s->d), [&](int l) {
      const uint32_t bits = __builtin_bit_cast(uint32_t, a[l]);
      const bool is_finite = (bits & 0x7F800000) != 0x7F800000;
      return (is_finite ? bits + 0x1000 : bits) & 0xFFFFE000;
    });
    return s + 1;
  }
  auto half = [&](float x) -> uint32_t {
    const float y = flags & 2 ? rectified(x) : x;
    return flags & 1 ? narrow<Bf16>(y, rounding).bits : narrow<F16>(y, rounding).bits;
  };
  each_lane(w, w.at<uint32_t>(s->d), [&](int l) { return half(a[l]) << 16 | half(b[l]); });
  return s + 1;
}

// The immediate is the window of the space.
const Step* is_space(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const uint64_t* a = w.at<uint64_t>(s->a);
  const uint64_t window = static_cast<uint64_t>(s->immediate) >> kWindowShift;
  Mask result = 0;
  for (int l = 0; l < kLanes; ++l) {
    const uint64_t here = a[l] >> kWindowShift;
    const bool is_global = here < kParamWindow >> kWindowShift;
    if (window == 0 ? is_global : here == window) result |= bit(l);
  }
  set_predicate(w, s->d, result);
  return s + 1;
}

// The next step runs in another mode of rounding.
const Step* rounded(Warp& base, const Step* s) {
  constexpr unsigned kModes[] = {0x0000, 0x6000, 0x2000, 0x4000};
  const unsigned saved = _mm_getcsr();
  _mm_setcsr((saved & ~0x6000U) | kModes[s->immediate & 3]);
  const Step* next = s[1].run(base, s + 1);
  _mm_setcsr(saved);
  return next;
}

}  // namespace

Handler find_bits(const ArithmeticKey& key) {
  const bool is_wide = bytes_of(key.type) == 8;
  switch (key.op) {
    MC_ROW(Op::kLop3, is_wide ? nullptr : lop3)
    MC_ROW(Op::kPrmt, is_wide ? nullptr : prmt)
    MC_ROW(Op::kShf, is_wide ? nullptr : funnel)
    MC_ROW(Op::kBmsk, is_wide ? nullptr : mask)
    case Op::kBfe:
      if (is_signed(key.type)) return is_wide ? bfe<int64_t> : bfe<int32_t>;
      return is_wide ? bfe<uint64_t> : bfe<uint32_t>;
      MC_ROW(Op::kBfi, is_wide ? bfi<uint64_t> : bfi<uint32_t>)
      MC_ROW(Op::kBrev, is_wide ? reverse<uint64_t> : reverse<uint32_t>)
      MC_ROW(Op::kDp4a, dot<4>)
      MC_ROW(Op::kDp2a, dot<2>)
      MC_ROW(Op::kAddCarry, is_wide ? carry<uint64_t> : carry<uint32_t>)
    default:
      return nullptr;
  }
}

void add_bits(PlainHandlers& handlers) {
  handlers.predicate = predicates;
  handlers.pack = pack;
  handlers.convert_pack = convert_pack;
  handlers.is_space = is_space;
  handlers.rounded = rounded;
}

}  // namespace mc::ptx::MC_PTX_VARIANT
