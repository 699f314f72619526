// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_MATH_INTEGER_H_
#define MC_EMU_MATH_INTEGER_H_

// CUDA's integer and bit intrinsics.  See math.h.

#include "mc_emu/math_bits.h"
#include "mc_emu/vector_types.h"

MC_EMU_INLINE int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
MC_EMU_INLINE int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x));
}
MC_EMU_INLINE int __ffs(int x) { return __builtin_ffs(x); }
MC_EMU_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
MC_EMU_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
MC_EMU_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }

inline unsigned long long __brevll(unsigned long long x) {
  unsigned long long reversed = 0;
  for (int i = 0; i < 64; ++i) reversed |= ((x >> i) & 1u) << (63 - i);
  return reversed;
}
inline unsigned __brev(unsigned x) { return static_cast<unsigned>(__brevll(x) >> 32); }

// The position of the |offset|-th set bit of `mask`, at or above `base` for a positive offset, at
// or below it for a negative one; ~0 where there is none.
inline unsigned __fns(unsigned mask, unsigned base, int offset) {
  if (offset == 0) return (mask >> base) & 1u ? base : ~0u;
  const int step = offset > 0 ? 1 : -1;
  int left = offset * step;
  for (int i = static_cast<int>(base); i >= 0 && i < 32; i += step) {
    if ((mask >> i) & 1u && --left == 0) return static_cast<unsigned>(i);
  }
  return ~0u;
}

// Four bytes chosen from the eight of (y, x), by the lowest three bits of each nibble of
// `selector`.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long bytes = (static_cast<unsigned long long>(y) << 32) | x;
  unsigned out = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned choice = (selector >> (4 * i)) & 7u;
    out |= (static_cast<unsigned>(bytes >> (8 * choice)) & 0xFFu) << (8 * i);
  }
  return out;
}

// Shifts of the 64-bit number (high, low); l gives the upper word, r the lower one.  The shift is
// taken modulo 32, or clamped to 32 in the c forms.
MC_EMU_INLINE unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  const unsigned long long both = (static_cast<unsigned long long>(high) << 32) | low;
  return static_cast<unsigned>((both << (shift < 32u ? shift : 32u)) >> 32);
}
MC_EMU_INLINE unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  const unsigned long long both = (static_cast<unsigned long long>(high) << 32) | low;
  return static_cast<unsigned>(both >> (shift < 32u ? shift : 32u));
}
MC_EMU_INLINE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return __funnelshift_lc(low, high, shift & 31u);
}
MC_EMU_INLINE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return __funnelshift_rc(low, high, shift & 31u);
}

MC_EMU_INLINE int __mulhi(int x, int y) {
  return static_cast<int>((static_cast<long long>(x) * y) >> 32);
}
MC_EMU_INLINE unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>((static_cast<unsigned long long>(x) * y) >> 32);
}
MC_EMU_INLINE long long __mul64hi(long long x, long long y) {
  return static_cast<long long>((static_cast<::mc_emu::Int128>(x) * y) >> 64);
}
MC_EMU_INLINE unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>((static_cast<::mc_emu::UInt128>(x) * y) >> 64);
}

// Products of the lowest 24 bits, of which the lowest 32 bits remain.
MC_EMU_INLINE unsigned __umul24(unsigned x, unsigned y) {
  return (x & 0xFFFFFFu) * (y & 0xFFFFFFu);
}
MC_EMU_INLINE int __mul24(int x, int y) {
  const auto sign_extended = [](int v) {
    return static_cast<int>(static_cast<unsigned>(v) << 8) >> 8;
  };
  return static_cast<int>(static_cast<unsigned>(sign_extended(x)) *
                          static_cast<unsigned>(sign_extended(y)));
}

MC_EMU_INLINE unsigned __usad(unsigned x, unsigned y, unsigned z) {
  return z + (x > y ? x - y : y - x);
}
MC_EMU_INLINE unsigned __sad(int x, int y, unsigned z) {
  const long long difference = static_cast<long long>(x) - y;
  return z + static_cast<unsigned>(difference < 0 ? -difference : difference);
}

// Averages that cannot overflow: rounded down, and (r) rounded up.
MC_EMU_INLINE int __hadd(int x, int y) {
  return static_cast<int>((static_cast<long long>(x) + y) >> 1);
}
MC_EMU_INLINE int __rhadd(int x, int y) {
  return static_cast<int>((static_cast<long long>(x) + y + 1) >> 1);
}
MC_EMU_INLINE unsigned __uhadd(unsigned x, unsigned y) {
  return static_cast<unsigned>((static_cast<unsigned long long>(x) + y) >> 1);
}
MC_EMU_INLINE unsigned __urhadd(unsigned x, unsigned y) {
  return static_cast<unsigned>((static_cast<unsigned long long>(x) + y + 1) >> 1);
}

namespace mc_emu {

// Part number `index` of a word, parts being as wide as Part.
template <class Part, class Word>
MC_EMU_INLINE Part part_of(Word word, int index) {
  return static_cast<Part>(static_cast<unsigned>(word) >>
                           (8 * static_cast<int>(sizeof(Part)) * index));
}

// The inner product of the four bytes of a and b, plus sum.
template <class A, class B, class Sum>
MC_EMU_INLINE Sum dot_bytes(unsigned a, unsigned b, Sum sum) {
  for (int i = 0; i < 4; ++i) {
    sum += static_cast<Sum>(part_of<A>(a, i)) * static_cast<Sum>(part_of<B>(b, i));
  }
  return sum;
}

// The inner product of the 16-bit parts of a and two bytes of b, from `first` on, plus sum.
template <class A, class B, class Sum>
MC_EMU_INLINE Sum dot_pairs(unsigned a, unsigned b, Sum sum, int first) {
  for (int i = 0; i < 2; ++i) {
    sum += static_cast<Sum>(part_of<A>(a, i)) * static_cast<Sum>(part_of<B>(b, first + i));
  }
  return sum;
}

}  // namespace mc_emu

MC_EMU_INLINE int __dp4a(int a, int b, int c) {
  return ::mc_emu::dot_bytes<signed char, signed char>(static_cast<unsigned>(a),
                                                       static_cast<unsigned>(b), c);
}
MC_EMU_INLINE unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  return ::mc_emu::dot_bytes<unsigned char, unsigned char>(a, b, c);
}
MC_EMU_INLINE int __dp4a(char4 a, char4 b, int c) {
  return c + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}
MC_EMU_INLINE unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) {
  return c + static_cast<unsigned>(a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w);
}
MC_EMU_INLINE int __dp2a_lo(int a, int b, int c) {
  return ::mc_emu::dot_pairs<short, signed char>(static_cast<unsigned>(a), static_cast<unsigned>(b),
                                                 c, 0);
}
MC_EMU_INLINE int __dp2a_hi(int a, int b, int c) {
  return ::mc_emu::dot_pairs<short, signed char>(static_cast<unsigned>(a), static_cast<unsigned>(b),
                                                 c, 2);
}
MC_EMU_INLINE unsigned __dp2a_lo(unsigned a, unsigned b, unsigned c) {
  return ::mc_emu::dot_pairs<unsigned short, unsigned char>(a, b, c, 0);
}
MC_EMU_INLINE unsigned __dp2a_hi(unsigned a, unsigned b, unsigned c) {
  return ::mc_emu::dot_pairs<unsigned short, unsigned char>(a, b, c, 2);
}

#endif  // MC_EMU_MATH_INTEGER_H_
