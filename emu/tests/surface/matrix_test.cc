// SPDX-License-Identifier: Apache-2.0
// <mma.h> and <cuda_fp8.h>.
#include <cmath>
#include <cstdint>

#include "cuda_fp8.h"
#include "kernel_test.h"
#include "mma.h"

namespace {

using mc_emu_test::findings;
using mc_emu_test::launch_kernel;
using mc_emu_test::run;
using mc_emu_test::Vector;
using ::testing::HasSubstr;
namespace wmma = nvcuda::wmma;

template <class T>
T number(float x) {
  if constexpr (std::is_same_v<T, __half>)
    return __float2half(x);
  else if constexpr (std::is_same_v<T, __nv_bfloat16>)
    return __float2bfloat16(x);
  else
    return static_cast<T>(x);
}

// C = 2 A B, A in rows, B in columns.
template <class T, class Sum, int kM, int kN, int kK>
void product_kernel(const T* a, const T* b, Sum* c) {
  wmma::fragment<wmma::matrix_a, kM, kN, kK, T, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, kM, kN, kK, T, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, kM, kN, kK, Sum> fc;
  wmma::fill_fragment(fc, Sum(0));
  wmma::load_matrix_sync(fa, a, kK);
  wmma::load_matrix_sync(fb, b, kK);
  wmma::mma_sync(fc, fa, fb, fc);
  for (int i = 0; i < fc.num_elements; ++i) fc.x[i] = fc.x[i] + fc.x[i];
  wmma::store_matrix_sync(c, fc, kN, wmma::mem_row_major);
}

template <class T, class Sum, int kM, int kN, int kK>
void expect_product() {
  Vector<T> a(kM * kK), b(kK * kN);
  Vector<Sum> c(kM * kN);
  const auto at_a = [](int i, int k) { return static_cast<float>((i * 5 + k * 3) % 11 - 5); };
  const auto at_b = [](int k, int j) { return static_cast<float>((k * 7 + j) % 9 - 4); };
  for (int i = 0; i < kM; ++i) {
    for (int k = 0; k < kK; ++k) a[static_cast<size_t>(i * kK + k)] = number<T>(at_a(i, k));
  }
  for (int j = 0; j < kN; ++j) {
    for (int k = 0; k < kK; ++k) b[static_cast<size_t>(j * kK + k)] = number<T>(at_b(k, j));
  }
  run(1, 32, product_kernel<T, Sum, kM, kN, kK>, a.data(), b.data(), c.data());
  for (int i = 0; i < kM; ++i) {
    for (int j = 0; j < kN; ++j) {
      float sum = 0;
      for (int k = 0; k < kK; ++k) sum += at_a(i, k) * at_b(k, j);
      EXPECT_EQ(static_cast<float>(c[static_cast<size_t>(i * kN + j)]), 2 * sum) << i << ' ' << j;
    }
  }
}

TEST(Wmma, MultipliesHalves) { expect_product<__half, float, 16, 16, 16>(); }
TEST(Wmma, MultipliesBfloats) { expect_product<__nv_bfloat16, float, 32, 8, 16>(); }
TEST(Wmma, MultipliesBytes) { expect_product<signed char, int, 8, 32, 16>(); }

void overrun_kernel(const __half* a, float* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
  wmma::load_matrix_sync(fa, a, 16);
  c[threadIdx.x] = __half2float(fa.x[0]);
}

TEST(Wmma, ChecksBoundsOfItsLoads) {
  Vector<__half> a(255);
  Vector<float> c(32);
  launch_kernel(1, 32, overrun_kernel, a.data(), c.data());
  EXPECT_THAT(findings(), HasSubstr("out_of_bounds_read"));
  mc_emu_reset();
}

TEST(Fp8, RoundsAndSaturates) {
  EXPECT_EQ(__nv_fp8_e4m3(1.0f).__x, 0x38);
  EXPECT_EQ(__nv_fp8_e4m3(-448.0f).__x, 0xFE);
  EXPECT_EQ(__nv_fp8_e4m3(1e9f).__x, 0x7E);
  EXPECT_EQ(__nv_cvt_float_to_fp8(1e9f, __NV_NOSAT, __NV_E4M3), 0x7F);
  EXPECT_EQ(__nv_fp8_e4m3(1.0625f).__x, 0x38);  // Half way: to even.
  EXPECT_EQ(__nv_fp8_e4m3(1.1875f).__x, 0x3A);
  EXPECT_EQ(__nv_fp8_e4m3(0x1p-9f).__x, 0x01);
  EXPECT_EQ(__nv_fp8_e4m3(0x1p-10f).__x, 0x00);
  EXPECT_EQ(__nv_fp8_e4m3(std::nanf("")).__x, 0x7F);
  EXPECT_EQ(__nv_fp8_e5m2(57344.0f).__x, 0x7B);
  EXPECT_EQ(__nv_fp8_e5m2(1e9f).__x, 0x7B);
  EXPECT_EQ(__nv_cvt_float_to_fp8(INFINITY, __NV_NOSAT, __NV_E5M2), 0x7C);
  EXPECT_EQ(__nv_fp8x2_e5m2(make_float2(1.0f, -2.0f)).__x, 0xC03C);
}

TEST(Fp8, EveryValueSurvivesTheWayThroughFloat) {
  for (int bits = 0; bits < 256; ++bits) {
    const auto byte = static_cast<uint8_t>(bits);
    __nv_fp8_e4m3 a;
    a.__x = byte;
    __nv_fp8_e5m2 b;
    b.__x = byte;
    if (static_cast<float>(a) == static_cast<float>(a)) {
      EXPECT_EQ(__nv_fp8_e4m3(static_cast<float>(a)).__x, byte);
    }
    if (std::isfinite(static_cast<float>(b))) {
      EXPECT_EQ(__nv_fp8_e5m2(static_cast<float>(b)).__x, byte);
    }
  }
}

}  // namespace
