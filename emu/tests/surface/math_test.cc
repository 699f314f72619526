// SPDX-License-Identifier: Apache-2.0
// CUDA's mathematics.  Rounding modes are checked against the processor's own, which the functions
// themselves never touch; the rest against definitions and known values.
#include "mc_emu/math.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "math_constants.h"

namespace {

// Numbers of all magnitudes, with special and nearby values mixed in.
class Numbers {
 public:
  explicit Numbers(unsigned seed) : random_(seed) {}

  float next_float() {
    const auto bits = static_cast<std::uint32_t>(random_());
    switch (random_() % 8) {
      case 0:
        return mc_emu::bits_as<float>(bits);
      case 1:
        return static_cast<float>(static_cast<int>(bits % 17) - 8);
      case 2:
        return mc_emu::bits_as<float>((bits & 0x80000000u) | 0x7F7FFFFFu);
      case 3:
        return mc_emu::bits_as<float>(bits & 0x800000FFu);
      default:
        return std::ldexp(mc_emu::bits_as<float>((bits & 0x807FFFFFu) | 0x3F800000u),
                          static_cast<int>(random_() % 41) - 20);
    }
  }
  double next_double() {
    const double low = std::ldexp(static_cast<double>(random_()), -32);
    return static_cast<double>(next_float()) * (1.0 + low * 0x1p-20);
  }
  std::uint64_t next_bits() { return random_(); }

 private:
  std::mt19937_64 random_;
};

// Runs `operation` with the processor in the mode; volatile keeps the compiler from folding.
template <class Operation>
auto in_mode(int mode, Operation operation) {
  std::fesetround(mode);
  const auto result = operation();
  std::fesetround(FE_TONEAREST);
  return result;
}

template <class Real>
void expect_same(Real got, Real want, double a, double b) {
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(got)) << a << ' ' << b;
  } else {
    EXPECT_EQ(got, want) << a << ' ' << b;
    EXPECT_EQ(std::signbit(got), std::signbit(want)) << a << ' ' << b;
  }
}

constexpr int kRounds = 50000;

#define TEST_FLOAT_MODE(suffix, mode)                                                              \
  TEST(MathRounding, OfFloatsIsTheProcessors_##suffix) {                                           \
    Numbers numbers(7);                                                                            \
    for (int i = 0; i < kRounds && !HasFailure(); ++i) {                                           \
      volatile float a = numbers.next_float(), b = numbers.next_float();                           \
      expect_same(__fadd_##suffix(a, b), in_mode(mode, [&] { return a + b; }), a, b);              \
      expect_same(__fsub_##suffix(a, b), in_mode(mode, [&] { return a - b; }), a, b);              \
      expect_same(__fmul_##suffix(a, b), in_mode(mode, [&] { return a * b; }), a, b);              \
      expect_same(__fdiv_##suffix(a, b), in_mode(mode, [&] { return a / b; }), a, b);              \
      expect_same(__fsqrt_##suffix(a), in_mode(mode, [&] { return std::sqrt(a); }), a, a);         \
      volatile double d = numbers.next_double();                                                   \
      expect_same(__double2float_##suffix(d),                                                      \
                  in_mode(mode, [&] { return static_cast<float>(d); }), d, d);                     \
      volatile long long n = static_cast<long long>(numbers.next_bits() >> (i % 64));              \
      expect_same(__ll2float_##suffix(n), in_mode(mode, [&] { return static_cast<float>(n); }), 0, \
                  0);                                                                              \
      expect_same(__ll2double_##suffix(n), in_mode(mode, [&] { return static_cast<double>(n); }),  \
                  0, 0);                                                                           \
      if (std::fabs(a) < 1e9f) {                                                                   \
        const float integral = in_mode(mode, [&] { return std::nearbyint(a); });                   \
        EXPECT_EQ(__float2int_##suffix(a), static_cast<int>(integral)) << a;                       \
      }                                                                                            \
    }                                                                                              \
  }                                                                                                \
  TEST(MathRounding, OfDoublesIsTheProcessors_##suffix) {                                          \
    Numbers numbers(8);                                                                            \
    for (int i = 0; i < kRounds && !HasFailure(); ++i) {                                           \
      volatile double a = numbers.next_double(), b = numbers.next_double();                        \
      expect_same(__dadd_##suffix(a, b), in_mode(mode, [&] { return a + b; }), a, b);              \
      expect_same(__dmul_##suffix(a, b), in_mode(mode, [&] { return a * b; }), a, b);              \
      expect_same(__ddiv_##suffix(a, b), in_mode(mode, [&] { return a / b; }), a, b);              \
      expect_same(__dsqrt_##suffix(a), in_mode(mode, [&] { return std::sqrt(a); }), a, a);         \
    }                                                                                              \
  }
TEST_FLOAT_MODE(rn, FE_TONEAREST)
TEST_FLOAT_MODE(rz, FE_TOWARDZERO)
TEST_FLOAT_MODE(ru, FE_UPWARD)
TEST_FLOAT_MODE(rd, FE_DOWNWARD)

TEST(MathRounding, FmaRoundsOnceInEachMode) {
  // (1 + 2^-23)^2 - 1 - 2^-22 = 2^-46, lost where the product is rounded first.
  const float x = 1.0f + 0x1p-23f;
  EXPECT_EQ(__fmaf_rn(x, x, -(1.0f + 0x1p-22f)), 0x1p-46f);
  EXPECT_EQ(__fmaf_rn(x, 1.0f, 0x1p-60f), x);
  EXPECT_EQ(__fmaf_ru(x, 1.0f, 0x1p-60f), 1.0f + 0x1p-22f);
  EXPECT_EQ(__fmaf_rz(x, 1.0f, -0x1p-60f), 1.0f);
  EXPECT_EQ(__fma_ru(1.0, 1.0, 0x1p-200), 1.0 + 0x1p-52);
  EXPECT_EQ(__fma_rd(1.0, 1.0, 0x1p-200), 1.0);
  Numbers numbers(9);
  for (int i = 0; i < kRounds && !HasFailure(); ++i) {
    const float a = numbers.next_float(), b = numbers.next_float(), c = numbers.next_float();
    expect_same(__fmaf_rn(a, b, c), std::fma(a, b, c), a, b);
  }
}

TEST(MathConversion, SaturatesAndMapsNaN) {
  EXPECT_EQ(__float2int_rz(3e9f), std::numeric_limits<int>::max());
  EXPECT_EQ(__float2int_rz(-3e9f), std::numeric_limits<int>::min());
  EXPECT_EQ(__float2uint_rz(-1.0f), 0u);
  EXPECT_EQ(__float2uint_rn(5e9f), 0xFFFFFFFFu);
  EXPECT_EQ(__float2int_rn(NAN), 0);
  EXPECT_EQ(__float2ll_rn(NAN), std::numeric_limits<long long>::min());
  EXPECT_EQ(__double2int_rz(std::nan("")), std::numeric_limits<int>::min());
  EXPECT_EQ(__double2uint_rz(std::nan("")), 0x80000000u);
  EXPECT_EQ(__float2int_rn(2.5f), 2);
  EXPECT_EQ(__float2int_rn(-2147483648.0f), std::numeric_limits<int>::min());
  EXPECT_EQ(__double2ull_rn(1.8446744073709552e19), ~0ull);
}

TEST(MathConversion, BitsSurvive) {
  EXPECT_EQ(__float_as_int(1.0f), 0x3F800000);
  EXPECT_EQ(__int_as_float(0x40000000), 2.0f);
  EXPECT_EQ(__uint_as_float(__float_as_uint(-3.5f)), -3.5f);
  EXPECT_EQ(__longlong_as_double(__double_as_longlong(-1.25)), -1.25);
  EXPECT_EQ(__hiloint2double(__double2hiint(1e300), __double2loint(1e300)), 1e300);
}

TEST(MathBits, CountAndReverse) {
  EXPECT_EQ(__clz(0), 32);
  EXPECT_EQ(__clz(1), 31);
  EXPECT_EQ(__clz(-1), 0);
  EXPECT_EQ(__clzll(1), 63);
  EXPECT_EQ(__ffs(0), 0);
  EXPECT_EQ(__ffs(8), 4);
  EXPECT_EQ(__popc(0xF0F0u), 8);
  EXPECT_EQ(__popcll(~0ull), 64);
  EXPECT_EQ(__brev(1u), 0x80000000u);
  EXPECT_EQ(__brev(0x0000000Fu), 0xF0000000u);
  EXPECT_EQ(__brevll(1ull), 1ull << 63);
  EXPECT_EQ(__fns(0x00000014u, 0, 1), 2u);
  EXPECT_EQ(__fns(0x00000014u, 0, 2), 4u);
  EXPECT_EQ(__fns(0x00000014u, 31, -1), 4u);
  EXPECT_EQ(__fns(0x00000014u, 0, 3), ~0u);
}

TEST(MathBits, PermuteAndShift) {
  EXPECT_EQ(__byte_perm(0x33221100u, 0x77665544u, 0x7531u), 0x77553311u);
  EXPECT_EQ(__byte_perm(0x33221100u, 0x77665544u, 0xFDB9u), 0x77553311u);
  EXPECT_EQ(__funnelshift_l(0x80000000u, 0x1u, 1), 0x3u);
  EXPECT_EQ(__funnelshift_r(0x80000000u, 0x1u, 1), 0xC0000000u);
  EXPECT_EQ(__funnelshift_l(5, 9, 32), 9u);
  EXPECT_EQ(__funnelshift_lc(5, 9, 40), 5u);
  EXPECT_EQ(__funnelshift_rc(5, 9, 40), 9u);
}

TEST(MathInteger, MultipliesAverageAndDot) {
  EXPECT_EQ(__mulhi(-1, 1), -1);
  EXPECT_EQ(__umulhi(0xFFFFFFFFu, 0xFFFFFFFFu), 0xFFFFFFFEu);
  EXPECT_EQ(__umul64hi(~0ull, ~0ull), ~0ull - 1);
  EXPECT_EQ(__mul64hi(-1, 5), -1);
  EXPECT_EQ(__mul24(0x00FFFFFF, 2), -2);
  EXPECT_EQ(__umul24(0x01000003u, 2u), 6u);
  EXPECT_EQ(__sad(-3, 4, 10u), 17u);
  EXPECT_EQ(__usad(3u, 4u, 10u), 11u);
  EXPECT_EQ(__hadd(std::numeric_limits<int>::max(), 3), (2147483647LL + 3) / 2);
  EXPECT_EQ(__rhadd(1, 2), 2);
  EXPECT_EQ(__dp4a(0x01FF0203, 0x01010101, 10), 15);
  EXPECT_EQ(__dp4a(0x01FF0203u, 0x01010101u, 10u), 271u);
  EXPECT_EQ(__dp2a_lo(0x0002FFFF, 0x03020504, 1), 1 + (-1 * 4 + 2 * 5));
  EXPECT_EQ(__dp2a_hi(0x0002FFFF, 0x03020504, 1), 1 + (-1 * 2 + 2 * 3));
}

TEST(MathSimd, WorksOnEachPart) {
  EXPECT_EQ(__vadd4(0xFF010203u, 0x01010101u), 0x00020304u);
  EXPECT_EQ(__vsub2(0x00010000u, 0x00000001u), 0x0001FFFFu);
  EXPECT_EQ(__vaddus4(0xFF010203u, 0x01010101u), 0xFF020304u);
  EXPECT_EQ(__vaddss4(0x7F80FF00u, 0x01FF0100u), 0x7F800000u);
  EXPECT_EQ(__vmaxs4(0x80FF0001u, 0x00000000u), 0x00000001u);
  EXPECT_EQ(__vmaxu4(0x80FF0001u, 0x00000000u), 0x80FF0001u);
  EXPECT_EQ(__vabsdiffu4(0x01050000u, 0x05010000u), 0x04040000u);
  EXPECT_EQ(__vcmpeq4(0x01020304u, 0x01000300u), 0xFF00FF00u);
  EXPECT_EQ(__vsetgtu4(0x02020202u, 0x01030201u), 0x01000001u);
  EXPECT_EQ(__vsadu4(0x01050000u, 0x05010000u), 8u);
  EXPECT_EQ(__vabsss4(0x80FF017Fu), 0x7F01017Fu);
}

TEST(MathMinMax, AcceptsTheMixturesOfCuda) {
  EXPECT_EQ(max(-1, 1u), 0xFFFFFFFFu);
  EXPECT_EQ(min(2L, 3L), 2L);
  EXPECT_EQ(max(1.0f, 2.0), 2.0);
  EXPECT_EQ(min(NAN, 2.0f), 2.0f);
  EXPECT_EQ(max(2.0f, NAN), 2.0f);
  EXPECT_EQ(umax(1u, 2u), 2u);
  EXPECT_EQ(llmin(-5, 2), -5);
  static_assert(std::is_same<decltype(min(1.0f, 1.0f)), float>::value, "float stays float");
  static_assert(std::is_same<decltype(max(1LL, 1ULL)), unsigned long long>::value, "unsigned wins");
}

TEST(MathFunctions, InversesUndoTheirFunctions) {
  for (double p : {1e-12, 1e-5, 0.01, 0.3, 0.5, 0.7, 0.999}) {
    EXPECT_NEAR(std::erfc(erfcinv(p)), p, 1e-13 * p) << p;
    EXPECT_NEAR(std::erf(erfinv(p)), p, 1e-14) << p;
    EXPECT_NEAR(std::erf(erfinv(-p)), -p, 1e-14) << p;
    EXPECT_NEAR(normcdf(normcdfinv(p)), p, 1e-12 * p) << p;
  }
  EXPECT_EQ(erfinv(0.0), 0.0);
  EXPECT_EQ(erfinv(1.0), HUGE_VAL);
  EXPECT_EQ(erfcinv(2.0), -HUGE_VAL);
  EXPECT_TRUE(std::isnan(erfinv(1.5)));
  EXPECT_FLOAT_EQ(normcdff(1.0f), 0.8413447461f);
}

TEST(MathFunctions, HaveTheirKnownValues) {
  EXPECT_EQ(rsqrtf(4.0f), 0.5f);
  EXPECT_EQ(rsqrt(16.0), 0.25);
  EXPECT_EQ(sinpif(1.0f), 0.0f);
  EXPECT_EQ(cospi(0.5), 0.0);
  EXPECT_TRUE(std::signbit(sinpi(-1.0)) && !std::signbit(sinpi(1.0)));
  EXPECT_FALSE(std::signbit(cospi(1.5)) || std::signbit(cospi(-0.5)));
  EXPECT_FALSE(std::signbit(normcdfinv(0.5)));
  EXPECT_EQ(norm3df(NAN, HUGE_VALF, 1.0f), HUGE_VALF);
  EXPECT_DOUBLE_EQ(sinpi(0.25), std::sqrt(0.5));
  EXPECT_NEAR(cospi(-2.75), std::cos(-2.75 * mc_emu::kPi), 1e-14);
  EXPECT_NEAR(erfcx(0.5), std::exp(0.25) * std::erfc(0.5), 1e-15);
  EXPECT_NEAR(erfcx(2.999999), erfcx(3.000001), 1e-6);
  EXPECT_NEAR(erfcx(1e4) * 1e4 * mc_emu::kSqrtPi, 1.0, 1e-8);
  EXPECT_FLOAT_EQ(exp10f(2.0f), 100.0f);
  EXPECT_FLOAT_EQ(norm4df(1, 2, 2, 4), 5.0f);
  EXPECT_FLOAT_EQ(rnorm3df(2, 3, 6), 1.0f / 7);
  EXPECT_NEAR(cyl_bessel_i0(1.0), 1.2660658777520084, 1e-14);
  EXPECT_NEAR(cyl_bessel_i1(-1.0), -0.5651591039924851, 1e-14);
  for (double x : {0.1, 5.0, 24.9, 25.1, 300.0}) {
    EXPECT_NEAR(cyl_bessel_i0(x) / std::cyl_bessel_i(0.0, x), 1.0, 1e-13) << x;
    EXPECT_NEAR(cyl_bessel_i1(x) / std::cyl_bessel_i(1.0, x), 1.0, 1e-13) << x;
  }
  EXPECT_TRUE(std::isinf(cyl_bessel_i0(HUGE_VAL)));
  EXPECT_EQ(__saturatef(-1.0f), 0.0f);
  EXPECT_EQ(__saturatef(NAN), 0.0f);
  EXPECT_EQ(__fdividef(1.0f, 4.0f), 0.25f);
}

TEST(MathFunctions, FastOnesHaveTheDomainOfTheHardware) {
  EXPECT_FLOAT_EQ(__expf(1.0f), 2.7182818f);
  EXPECT_FLOAT_EQ(__powf(2.0f, 10.0f), 1024.0f);
  EXPECT_TRUE(std::isnan(__powf(-2.0f, 2.0f)));
  EXPECT_TRUE(std::isnan(__logf(-1.0f)));
  float sine = 0, cosine = 0;
  __sincosf(0.5f, &sine, &cosine);
  EXPECT_FLOAT_EQ(sine, std::sin(0.5f));
  EXPECT_FLOAT_EQ(cosine, std::cos(0.5f));
}

TEST(MathConstants, AreWhatTheirNamesSay) {
  EXPECT_TRUE(std::isinf(CUDART_INF_F));
  EXPECT_TRUE(std::isnan(CUDART_NAN_F));
  EXPECT_EQ(CUDART_INF, HUGE_VAL);
  EXPECT_EQ(CUDART_MAX_NORMAL_F, std::numeric_limits<float>::max());
  EXPECT_FLOAT_EQ(CUDART_PI_F, std::acos(-1.0f));
  EXPECT_DOUBLE_EQ(CUDART_LN2, std::log(2.0));
  EXPECT_DOUBLE_EQ(CUDART_SQRT_2OPI, std::sqrt(2.0 / CUDART_PI));
}

}  // namespace
