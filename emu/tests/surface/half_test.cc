// SPDX-License-Identifier: Apache-2.0
// The 16-bit types against a slow twin: a format as the sorted list of all its values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "cuda_bf16.h"
#include "cuda_fp16.h"

namespace {

using mc_emu::Bf16;
using mc_emu::Fp16;
using mc_emu::Rounding;

static_assert(std::is_trivial<__half>::value && sizeof(__half) == 2, "at::Half has 2 bytes");
static_assert(std::is_trivial<__half2>::value && sizeof(__half2) == 4, "a pair has 4 bytes");
static_assert(std::is_trivial<__nv_bfloat16>::value && sizeof(__nv_bfloat16) == 2, "2 bytes");
static_assert(std::is_trivial<__nv_bfloat162>::value && alignof(__nv_bfloat162) == 4, "4 bytes");

// The value of finite bits, by the definition of the format.
template <class Format>
double value_of(std::uint16_t bits) {
  const int exponent = (bits & 0x7FFF) >> Format::kMantissaBits;
  const int fraction = bits & ((1 << Format::kMantissaBits) - 1);
  const double significand = exponent == 0 ? fraction : fraction + (1 << Format::kMantissaBits);
  const int power = std::max(exponent, 1) - Format::kExponentBias - Format::kMantissaBits;
  return std::ldexp(bits & 0x8000 ? -significand : significand, power);
}

// Rounds a finite magnitude by looking at its two neighbours among all values of the format, where
// the one after the largest is 2^(bias+1) and stands for infinity.
template <class Format>
std::uint16_t magnitude_slowly(long double x, Rounding mode, bool negative) {
  std::uint16_t below = 0, past = Format::kInfinity;
  while (past - below > 1) {
    const auto middle = static_cast<std::uint16_t>((below + past) / 2);
    (value_of<Format>(middle) <= x ? below : past) = middle;
  }
  const long double low = value_of<Format>(below);
  if (low == x) return below;
  const long double high = value_of<Format>(past);
  if (mode == Rounding::kZero) return x >= high ? Format::kInfinity - 1 : below;
  if (mode == Rounding::kUp) return negative ? below : past;
  if (mode == Rounding::kDown) return negative ? past : below;
  if (x - low == high - x) return below & 1 ? past : below;
  return x - low < high - x ? below : past;
}

template <class Format>
std::uint16_t encode_slowly(long double x, Rounding mode) {
  if (std::isnan(x)) return 0x7FFF;
  const bool negative = std::signbit(x);
  const std::uint16_t sign = negative ? 0x8000 : 0;
  if (std::isinf(x)) return sign | Format::kInfinity;
  return sign | magnitude_slowly<Format>(std::fabs(x), mode, negative);
}

constexpr Rounding kModes[] = {Rounding::kNearest, Rounding::kZero, Rounding::kUp, Rounding::kDown};

template <class Format>
class HalfBits : public testing::Test {};
using Formats = testing::Types<Fp16, Bf16>;
TYPED_TEST_SUITE(HalfBits, Formats);

TYPED_TEST(HalfBits, DecodeGivesTheValueOfEachOfAllBitPatterns) {
  for (int i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float got = mc_emu::decode<TypeParam>(bits);
    if ((bits & 0x7FFF) < TypeParam::kInfinity) {
      ASSERT_EQ(got, value_of<TypeParam>(bits)) << i;
      ASSERT_EQ(std::signbit(got), i >= 0x8000) << i;
    } else if ((bits & 0x7FFF) == TypeParam::kInfinity) {
      ASSERT_EQ(got, i >= 0x8000 ? -INFINITY : INFINITY) << i;
    } else {
      ASSERT_TRUE(std::isnan(got)) << i;
    }
  }
}

TYPED_TEST(HalfBits, EncodeUndoesDecode) {
  for (int i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    if ((bits & 0x7FFF) > TypeParam::kInfinity) continue;
    for (Rounding mode : kModes) {
      ASSERT_EQ(mc_emu::encode<TypeParam>(mc_emu::decode<TypeParam>(bits), mode), bits);
    }
  }
}

// Ties, the neighbours of ties, and the neighbours of every value.
TYPED_TEST(HalfBits, EncodeRoundsAtAndAroundEveryTie) {
  for (int i = 0; i < TypeParam::kInfinity; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const double here = value_of<TypeParam>(bits);
    const double next = value_of<TypeParam>(static_cast<std::uint16_t>(bits + 1));
    const float tie = static_cast<float>((here + next) / 2);
    for (float x : {static_cast<float>(here), tie, std::nextafterf(tie, INFINITY),
                    std::nextafterf(tie, -INFINITY)}) {
      for (Rounding mode : kModes) {
        ASSERT_EQ(mc_emu::encode<TypeParam>(x, mode), encode_slowly<TypeParam>(x, mode)) << x;
        ASSERT_EQ(mc_emu::encode<TypeParam>(-x, mode), encode_slowly<TypeParam>(-x, mode)) << x;
      }
    }
  }
}

TYPED_TEST(HalfBits, EncodeRoundsRandomFloats) {
  std::mt19937 random(1);
  for (int i = 0; i < 300000; ++i) {
    const auto x = mc_emu::bits_as<float>(static_cast<std::uint32_t>(random()));
    const Rounding mode = kModes[i % 4];
    ASSERT_EQ(mc_emu::encode<TypeParam>(x, mode), encode_slowly<TypeParam>(x, mode)) << x;
  }
}

TYPED_TEST(HalfBits, EncodeRoundsDoublesOnce) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 300000; ++i) {
    const auto near = mc_emu::bits_as<float>(static_cast<std::uint32_t>(random()) & 0xFFFFF000u);
    if (std::isnan(near)) continue;
    // A float tie of the short format, and a hair beside it that float cannot hold.
    const double x = near * (1.0 + (static_cast<int>(random() % 3) - 1) * 0x1p-50);
    const Rounding mode = kModes[i % 4];
    ASSERT_EQ(mc_emu::encode<TypeParam>(x, mode), encode_slowly<TypeParam>(x, mode)) << x;
  }
}

TYPED_TEST(HalfBits, EncodeRoundsIntegersOnce) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 200000; ++i) {
    const auto x = static_cast<long long>(random()) >> (random() % 64);
    const auto sparse =
        static_cast<long long>((1ull << (random() % 63)) | (1ull << (random() % 63)) | 1);
    const Rounding mode = kModes[i % 4];
    ASSERT_EQ(mc_emu::encode<TypeParam>(x, mode), encode_slowly<TypeParam>(x, mode)) << x;
    ASSERT_EQ(mc_emu::encode<TypeParam>(sparse, mode), encode_slowly<TypeParam>(sparse, mode));
  }
  const auto most = std::numeric_limits<unsigned long long>::max();
  for (Rounding mode : kModes) {
    EXPECT_EQ(mc_emu::encode<TypeParam>(most, mode), encode_slowly<TypeParam>(most, mode));
  }
}

// Every operation on random operands equals the exact result rounded once.
TYPED_TEST(HalfBits, FmaRoundsOnce) {
  std::mt19937 random(4);
  for (int i = 0; i < 300000; ++i) {
    const auto finite = [&] {
      return static_cast<std::uint16_t>((random() % TypeParam::kInfinity) | (random() & 0x8000));
    };
    const std::uint16_t a = finite(), b = finite(), c = finite();
    const double product = value_of<TypeParam>(a) * value_of<TypeParam>(b);
    // Exact in 64 bits of mantissa unless the exponents lie far apart: then skip.
    const long double addend = value_of<TypeParam>(c);
    const long double sum = product + addend;
    if (sum - product != addend || sum - addend != product) continue;
    const std::uint16_t got = mc_emu::encode_fma<TypeParam>(
        mc_emu::decode<TypeParam>(a), mc_emu::decode<TypeParam>(b), mc_emu::decode<TypeParam>(c));
    if (sum == 0) {
      ASSERT_EQ(got & 0x7FFF, 0);
    } else {
      ASSERT_EQ(got, encode_slowly<TypeParam>(sum, Rounding::kNearest))
          << a << ' ' << b << ' ' << c;
    }
  }
}

TEST(HalfBits, FmaLetsATinyAddendBreakATie) {
  const __half tiny = __ushort_as_half(1);
  // Half has only even numbers near 33 * 63 = 2079, so the product is a tie between 2078 and 2080,
  // which a tiny addend decides.
  const __half x = __float2half(33.0f), y = __float2half(63.0f);
  EXPECT_EQ(__half2float(__hfma(x, y, __float2half(0.0f))), 2080.0f);
  EXPECT_EQ(__half2float(__hfma(x, y, __hneg(tiny))), 2078.0f);
  EXPECT_EQ(__half2float(__hfma(x, y, tiny)), 2080.0f);
}

template <class T>
class HalfArithmetic : public testing::Test {};
using Types = testing::Types<__half, __nv_bfloat16>;
TYPED_TEST_SUITE(HalfArithmetic, Types);

template <class T>
using FormatOf = typename std::conditional<std::is_same<T, __half>::value, Fp16, Bf16>::type;

template <class T>
std::uint16_t bits(T x) {
  return mc_emu::bits_as<std::uint16_t>(x);
}

TYPED_TEST(HalfArithmetic, RoundsSumsProductsAndQuotientsOnce) {
  using Format = FormatOf<TypeParam>;
  std::mt19937 random(5);
  for (int i = 0; i < 200000; ++i) {
    const auto a_bits =
        static_cast<std::uint16_t>((random() % Format::kInfinity) | (random() & 0x8000));
    const auto b_bits =
        static_cast<std::uint16_t>((random() % Format::kInfinity) | (random() & 0x8000));
    const auto a = mc_emu::bits_as<TypeParam>(a_bits), b = mc_emu::bits_as<TypeParam>(b_bits);
    const double x = value_of<Format>(a_bits), y = value_of<Format>(b_bits);
    ASSERT_EQ(bits(__hmul(a, b)), encode_slowly<Format>(x * y, Rounding::kNearest));
    if (y != 0) {
      // No quotient of two such numbers comes near enough to a tie for the error of long double.
      ASSERT_EQ(bits(__hdiv(a, b)),
                encode_slowly<Format>(static_cast<long double>(x) / y, Rounding::kNearest));
    }
    if (std::fabs(std::log2(std::fabs(x / y))) > 40) continue;
    ASSERT_EQ(bits(__hadd(a, b)), encode_slowly<Format>(x + y, Rounding::kNearest));
    ASSERT_EQ(bits(__hsub(a, b)), encode_slowly<Format>(x - y, Rounding::kNearest));
  }
}

TYPED_TEST(HalfArithmetic, ComparesNaNAsCudaDoes) {
  const auto nan = mc_emu::bits_as<TypeParam>(std::uint16_t{0x7FFF});
  const TypeParam one = 1.0f;
  EXPECT_TRUE(__hisnan(nan));
  EXPECT_FALSE(__heq(nan, nan));
  EXPECT_FALSE(__hne(nan, one));
  EXPECT_TRUE(__hneu(nan, one));
  EXPECT_TRUE(__hltu(nan, one));
  EXPECT_FALSE(__hlt(nan, one));
  EXPECT_TRUE(nan != nan);
  EXPECT_FALSE(nan == nan);
  EXPECT_EQ(bits(__hmax(nan, one)), bits(one));
  EXPECT_EQ(bits(__hmin(one, nan)), bits(one));
  EXPECT_TRUE(__hisnan(__hmax_nan(nan, one)));
}

TYPED_TEST(HalfArithmetic, OrdersZeros) {
  const TypeParam zero = 0.0f, minus = -0.0f;
  EXPECT_TRUE(__heq(zero, minus));
  EXPECT_EQ(bits(__hmax(minus, zero)), 0);
  EXPECT_EQ(bits(__hmin(zero, minus)), 0x8000);
}

TYPED_TEST(HalfArithmetic, FunctionsRoundTheFloatResult) {
  for (float x : {0.25f, 1.0f, 2.5f, 7.0f}) {
    const TypeParam h = x;
    EXPECT_EQ(bits(hexp(h)), bits(TypeParam(std::exp(x)))) << x;
    EXPECT_EQ(bits(hlog(h)), bits(TypeParam(std::log(x)))) << x;
    EXPECT_EQ(bits(hsqrt(h)), bits(TypeParam(std::sqrt(x)))) << x;
    EXPECT_EQ(bits(hrsqrt(h)), bits(TypeParam(1.0 / std::sqrt(double{x})))) << x;
    EXPECT_EQ(bits(hrcp(h)), bits(TypeParam(1.0f / x))) << x;
    EXPECT_EQ(bits(htanh(h)), bits(TypeParam(std::tanh(x)))) << x;
    EXPECT_EQ(bits(hfloor(h)), bits(TypeParam(std::floor(x)))) << x;
  }
}

TYPED_TEST(HalfArithmetic, OperatorsAndImplicitConversionsWork) {
  TypeParam a = 1.5f, b = 2;
  a += b;
  ++a;
  EXPECT_EQ(static_cast<float>(a), 4.5f);
  EXPECT_EQ(static_cast<float>(a * b - b / a), static_cast<float>(TypeParam(9.0f - float(b / a))));
  EXPECT_EQ(static_cast<int>(a), 4);
  EXPECT_TRUE(static_cast<bool>(a));
  EXPECT_TRUE(a > b && b < a && a >= b && b <= a);
  const float promoted = a;
  const double widened = a;
  EXPECT_EQ(promoted, widened);
}

TEST(HalfPairs, WorkLaneByLane) {
  const __half2 a = __floats2half2_rn(1.0f, -2.0f), b = __float2half2_rn(3.0f);
  const float2 sum = __half22float2(__hadd2(a, b));
  EXPECT_EQ(sum.x, 4.0f);
  EXPECT_EQ(sum.y, 1.0f);
  const float2 fma = __half22float2(__hfma2(a, b, a));
  EXPECT_EQ(fma.x, 4.0f);
  EXPECT_EQ(fma.y, -8.0f);
  EXPECT_EQ(__low2float(__lowhigh2highlow(a)), -2.0f);
  EXPECT_EQ(__half2float(__high2half(a)), -2.0f);
  EXPECT_EQ(__half2float(__highs2half2(a, b).y), 3.0f);
  EXPECT_EQ(__hlt2_mask(a, b), 0xFFFFFFFFu);
  EXPECT_EQ(__hgt2_mask(a, __half2half2(__float2half(0.0f))), 0x0000FFFFu);
  EXPECT_FALSE(__hbgt2(a, __half2half2(__float2half(0.0f))));
  EXPECT_EQ(__low2float(__hgt2(a, __float2half2_rn(0.0f))), 1.0f);
  EXPECT_EQ(__high2float(h2sqrt(__floats2half2_rn(4.0f, 9.0f))), 3.0f);
}

TEST(HalfPairs, OfBfloatHaveTheirOwnNames) {
  const __nv_bfloat162 a = __floats2bfloat162_rn(1.0f, -2.0f);
  const float2 back = __bfloat1622float2(a);
  EXPECT_EQ(back.x, 1.0f);
  EXPECT_EQ(back.y, -2.0f);
  EXPECT_EQ(__bfloat162float(__low2bfloat16(a)), 1.0f);
  EXPECT_EQ(__high2float(__bfloat162bfloat162(__float2bfloat16(5.0f))), 5.0f);
  EXPECT_EQ(__low2float(__float22bfloat162_rn(back) * a + a), 2.0f);
}

TEST(HalfConversion, ToIntegersSaturates) {
  struct Case {
    float from;
    int to_int;
    short to_short;
    unsigned to_uint;
  };
  const Case cases[] = {{2.5f, 2, 2, 2},
                        {3.5f, 4, 4, 4},
                        {-1.5f, -2, -2, 0},
                        {INFINITY, std::numeric_limits<int>::max(), 32767, 0xFFFFFFFFu},
                        {-INFINITY, std::numeric_limits<int>::min(), -32768, 0},
                        {40000.0f, 40000, 32767, 40000},
                        {NAN, 0, 0, 0}};
  for (const Case& c : cases) {
    const __half h = __float2half(c.from);
    EXPECT_EQ(__half2int_rn(h), c.to_int) << c.from;
    EXPECT_EQ(__half2short_rn(h), c.to_short) << c.from;
    EXPECT_EQ(__half2uint_rn(h), c.to_uint) << c.from;
  }
  EXPECT_EQ(__half2int_ru(__float2half(1.25f)), 2);
  EXPECT_EQ(__half2int_rd(__float2half(-1.25f)), -2);
  EXPECT_EQ(__half2int_rz(__float2half(-1.75f)), -1);
}

TEST(HalfConversion, GoesBetweenTheTwoTypes) {
  EXPECT_EQ(static_cast<float>(__half(__float2bfloat16(1.5f))), 1.5f);
  EXPECT_EQ(static_cast<float>(__nv_bfloat16(__float2half(1.5f))), 1.5f);
}

}  // namespace
