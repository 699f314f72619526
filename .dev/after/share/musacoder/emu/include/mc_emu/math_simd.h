// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_MATH_SIMD_H_
#define MC_EMU_MATH_SIMD_H_

// CUDA's operations on two 16-bit or four 8-bit integers packed in a word (__vadd4 and kin).

#include <cstdint>
#include <limits>

#include "mc_emu/math_bits.h"

namespace mc_emu {

template <class Part>
MC_EMU_INLINE unsigned clamped(int x) {
  constexpr int kLeast = std::numeric_limits<Part>::min();
  constexpr int kMost = std::numeric_limits<Part>::max();
  return static_cast<unsigned>(x < kLeast ? kLeast : x > kMost ? kMost : x);
}

// Applies f(int, int) to the parts of a and b; the low bits of each result form the word.
template <class Part, class Function>
MC_EMU_INLINE unsigned by_part(unsigned a, unsigned b, Function f) {
  constexpr int kBits = 8 * static_cast<int>(sizeof(Part));
  constexpr unsigned kMask = (1u << kBits) - 1u;
  unsigned out = 0;
  for (int shift = 0; shift < 32; shift += kBits) {
    const int x = static_cast<Part>(a >> shift), y = static_cast<Part>(b >> shift);
    out |= (static_cast<unsigned>(f(x, y)) & kMask) << shift;
  }
  return out;
}

// The sum of |x - y| over the parts.
template <class Part>
MC_EMU_INLINE unsigned sum_of_differences(unsigned a, unsigned b) {
  unsigned sum = 0;
  by_part<Part>(a, b,
                [&](int x, int y) { return sum += static_cast<unsigned>(x > y ? x - y : y - x); });
  return sum;
}

}  // namespace mc_emu

// name2 and name4 from an expression over the parts x and y.
#define MC_PARTS(name2, name4, Part2, Part4, expression)                                       \
  inline unsigned name2(unsigned a, unsigned b) {                                              \
    return ::mc_emu::by_part<Part2>(a, b, []([[maybe_unused]] int x, [[maybe_unused]] int y) { \
      using Part [[maybe_unused]] = Part2;                                                     \
      return expression;                                                                       \
    });                                                                                        \
  }                                                                                            \
  inline unsigned name4(unsigned a, unsigned b) {                                              \
    return ::mc_emu::by_part<Part4>(a, b, []([[maybe_unused]] int x, [[maybe_unused]] int y) { \
      using Part [[maybe_unused]] = Part4;                                                     \
      return expression;                                                                       \
    });                                                                                        \
  }
#define MC_PARTS_SIGNED(name, expression) \
  MC_PARTS(name##2, name##4, std::int16_t, std::int8_t, expression)
#define MC_PARTS_UNSIGNED(name, expression) \
  MC_PARTS(name##2, name##4, std::uint16_t, std::uint8_t, expression)

MC_PARTS_UNSIGNED(__vadd, x + y)
MC_PARTS_UNSIGNED(__vsub, x - y)
MC_PARTS_SIGNED(__vaddss, ::mc_emu::clamped<Part>(x + y))
MC_PARTS_SIGNED(__vsubss, ::mc_emu::clamped<Part>(x - y))
MC_PARTS_UNSIGNED(__vaddus, ::mc_emu::clamped<Part>(x + y))
MC_PARTS_UNSIGNED(__vsubus, ::mc_emu::clamped<Part>(x - y))
MC_PARTS_SIGNED(__vavgs, (x + y + (x + y >= 0 ? 1 : 0)) >> 1)
MC_PARTS_UNSIGNED(__vavgu, (x + y + 1) >> 1)
MC_PARTS_UNSIGNED(__vhaddu, (x + y) >> 1)
MC_PARTS_SIGNED(__vmaxs, x > y ? x : y)
MC_PARTS_SIGNED(__vmins, x < y ? x : y)
MC_PARTS_UNSIGNED(__vmaxu, x > y ? x : y)
MC_PARTS_UNSIGNED(__vminu, x < y ? x : y)
MC_PARTS_SIGNED(__vabsdiffs, x > y ? x - y : y - x)
MC_PARTS_UNSIGNED(__vabsdiffu, x > y ? x - y : y - x)

#define MC_PARTS_COMPARE(name, op)                                                         \
  MC_PARTS(__vcmp##name##2, __vcmp##name##4, std::uint16_t, std::uint8_t, x op y ? ~0 : 0) \
  MC_PARTS(__vset##name##2, __vset##name##4, std::uint16_t, std::uint8_t, x op y ? 1 : 0)
#define MC_PARTS_COMPARE_BOTH(name, op)                                                      \
  MC_PARTS(__vcmp##name##s2, __vcmp##name##s4, std::int16_t, std::int8_t, x op y ? ~0 : 0)   \
  MC_PARTS(__vset##name##s2, __vset##name##s4, std::int16_t, std::int8_t, x op y ? 1 : 0)    \
  MC_PARTS(__vcmp##name##u2, __vcmp##name##u4, std::uint16_t, std::uint8_t, x op y ? ~0 : 0) \
  MC_PARTS(__vset##name##u2, __vset##name##u4, std::uint16_t, std::uint8_t, x op y ? 1 : 0)
MC_PARTS_COMPARE(eq, ==)
MC_PARTS_COMPARE(ne, !=)
MC_PARTS_COMPARE_BOTH(lt, <)
MC_PARTS_COMPARE_BOTH(le, <=)
MC_PARTS_COMPARE_BOTH(gt, >)
MC_PARTS_COMPARE_BOTH(ge, >=)
#undef MC_PARTS_COMPARE_BOTH
#undef MC_PARTS_COMPARE
#undef MC_PARTS_UNSIGNED
#undef MC_PARTS_SIGNED
#undef MC_PARTS

inline unsigned __vneg2(unsigned a) { return __vsub2(0, a); }
inline unsigned __vneg4(unsigned a) { return __vsub4(0, a); }
inline unsigned __vnegss2(unsigned a) { return __vsubss2(0, a); }
inline unsigned __vnegss4(unsigned a) { return __vsubss4(0, a); }
inline unsigned __vabs2(unsigned a) { return __vabsdiffs2(a, 0); }
inline unsigned __vabs4(unsigned a) { return __vabsdiffs4(a, 0); }
inline unsigned __vabsss2(unsigned a) { return __vmaxs2(a, __vnegss2(a)); }
inline unsigned __vabsss4(unsigned a) { return __vmaxs4(a, __vnegss4(a)); }
inline unsigned __vsads2(unsigned a, unsigned b) {
  return ::mc_emu::sum_of_differences<std::int16_t>(a, b);
}
inline unsigned __vsads4(unsigned a, unsigned b) {
  return ::mc_emu::sum_of_differences<std::int8_t>(a, b);
}
inline unsigned __vsadu2(unsigned a, unsigned b) {
  return ::mc_emu::sum_of_differences<std::uint16_t>(a, b);
}
inline unsigned __vsadu4(unsigned a, unsigned b) {
  return ::mc_emu::sum_of_differences<std::uint8_t>(a, b);
}

// --- Dynamic programming: sums and choices of two or three, of a word or of its two halves.

namespace mc_emu {

// Applies f to the parts of a, b and c; a whole word is one part.
template <class Part, class Function>
MC_EMU_INLINE unsigned by_part(unsigned a, unsigned b, unsigned c, Function f) {
  constexpr int kBits = 8 * static_cast<int>(sizeof(Part));
  constexpr unsigned kMask = static_cast<unsigned>((1ull << kBits) - 1ull);
  unsigned out = 0;
  for (int shift = 0; shift < 32; shift += kBits) {
    const auto part = [shift](unsigned word) { return static_cast<Part>(word >> shift); };
    out |= (static_cast<unsigned>(f(part(a), part(b), part(c))) & kMask) << shift;
  }
  return out;
}
template <class T>
MC_EMU_INLINE T larger(T x, T y) {
  return x > y ? x : y;
}
template <class T>
MC_EMU_INLINE T smaller(T x, T y) {
  return x < y ? x : y;
}

}  // namespace mc_emu

#define MC_CHOICE_OF_THREE(name, suffix, Word, Part, expression)                      \
  inline Word name##_##suffix(const Word a, const Word b, const Word c) {             \
    return static_cast<Word>(::mc_emu::by_part<Part>(                                 \
        static_cast<unsigned>(a), static_cast<unsigned>(b), static_cast<unsigned>(c), \
        [](Part x, Part y, Part z) { return static_cast<Part>(expression); }));       \
  }
#define MC_CHOICE_OF_TWO(name, suffix, Word, Part, expression)                \
  inline Word name##_##suffix(const Word a, const Word b) {                   \
    return static_cast<Word>(::mc_emu::by_part<Part>(                         \
        static_cast<unsigned>(a), static_cast<unsigned>(b), 0u,               \
        [](Part x, Part y, Part) { return static_cast<Part>(expression); })); \
  }
#define MC_CHOICES(suffix, Word, Part, Sum)                                                     \
  MC_CHOICE_OF_THREE(                                                                           \
      __viaddmax, suffix, Word, Part,                                                           \
      ::mc_emu::larger(static_cast<Part>(static_cast<Sum>(x) + static_cast<Sum>(y)), z))        \
  MC_CHOICE_OF_THREE(                                                                           \
      __viaddmin, suffix, Word, Part,                                                           \
      ::mc_emu::smaller(static_cast<Part>(static_cast<Sum>(x) + static_cast<Sum>(y)), z))       \
  MC_CHOICE_OF_THREE(__vimax3, suffix, Word, Part, ::mc_emu::larger(::mc_emu::larger(x, y), z)) \
  MC_CHOICE_OF_THREE(__vimin3, suffix, Word, Part, ::mc_emu::smaller(::mc_emu::smaller(x, y), z))
#define MC_CHOICES_RELU(suffix, Word, Part, Sum)                                               \
  MC_CHOICES(suffix, Word, Part, Sum)                                                          \
  MC_CHOICE_OF_THREE(                                                                          \
      __viaddmax, suffix##_relu, Word, Part,                                                   \
      ::mc_emu::larger(                                                                        \
          ::mc_emu::larger(static_cast<Part>(static_cast<Sum>(x) + static_cast<Sum>(y)), z),   \
          Part{0}))                                                                            \
  MC_CHOICE_OF_THREE(                                                                          \
      __viaddmin, suffix##_relu, Word, Part,                                                   \
      ::mc_emu::larger(                                                                        \
          ::mc_emu::smaller(static_cast<Part>(static_cast<Sum>(x) + static_cast<Sum>(y)), z),  \
          Part{0}))                                                                            \
  MC_CHOICE_OF_THREE(__vimax3, suffix##_relu, Word, Part,                                      \
                     ::mc_emu::larger(::mc_emu::larger(::mc_emu::larger(x, y), z), Part{0}))   \
  MC_CHOICE_OF_THREE(__vimin3, suffix##_relu, Word, Part,                                      \
                     ::mc_emu::larger(::mc_emu::smaller(::mc_emu::smaller(x, y), z), Part{0})) \
  MC_CHOICE_OF_TWO(__vimax, suffix##_relu, Word, Part,                                         \
                   ::mc_emu::larger(::mc_emu::larger(x, y), Part{0}))                          \
  MC_CHOICE_OF_TWO(__vimin, suffix##_relu, Word, Part,                                         \
                   ::mc_emu::larger(::mc_emu::smaller(x, y), Part{0}))
MC_CHOICES_RELU(s32, int, std::int32_t, std::uint32_t)
MC_CHOICES_RELU(s16x2, unsigned, std::int16_t, int)
MC_CHOICES(u32, unsigned, std::uint32_t, std::uint32_t)
MC_CHOICES(u16x2, unsigned, std::uint16_t, unsigned)
#undef MC_CHOICES_RELU
#undef MC_CHOICES
#undef MC_CHOICE_OF_TWO
#undef MC_CHOICE_OF_THREE

// The same of two, with the answer whether the first was chosen.
#define MC_CHOICE_TOLD(suffix, Word)                                             \
  inline Word __vibmax_##suffix(const Word a, const Word b, bool* const first) { \
    *first = a >= b;                                                             \
    return *first ? a : b;                                                       \
  }                                                                              \
  inline Word __vibmin_##suffix(const Word a, const Word b, bool* const first) { \
    *first = a <= b;                                                             \
    return *first ? a : b;                                                       \
  }
MC_CHOICE_TOLD(s32, int)
MC_CHOICE_TOLD(u32, unsigned)
#undef MC_CHOICE_TOLD

#endif  // MC_EMU_MATH_SIMD_H_
