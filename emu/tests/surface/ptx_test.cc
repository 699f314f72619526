// SPDX-License-Identifier: Apache-2.0
// Inline PTX as the rewriter writes it, against the same thing in C++.
#include <cmath>
#include <cstdint>

#include "cuda_fp16.h"
#include "kernel_test.h"

// asm(text : outputs : inputs)
#define MC_ASM(text, ...) ::mc_emu::ptx(text, __LINE__, 0, __VA_ARGS__)

namespace {

using ::mc_emu::ptx_input;
using ::mc_emu::ptx_output;
using ::mc_emu::ptx_update;
using mc_emu_test::findings;
using mc_emu_test::launch_kernel;
using mc_emu_test::run;
using mc_emu_test::Vector;
using ::testing::HasSubstr;

void integers_kernel(unsigned* y) {
  unsigned a = 0xF0F01234u, b = 0x0FF05678u, c = 0x00FF9ABCu, d = 0;
  int i = 0;
  unsigned long long w = 0;
  MC_ASM("lop3.b32 %0, %1, %2, %3, 0xE8;", ptx_output(y[0]), ptx_input(a), ptx_input(b),
         ptx_input(c));
  MC_ASM("prmt.b32 %0, %1, %2, 0x5140;", ptx_output(y[1]), ptx_input(a), ptx_input(b));
  MC_ASM("bfe.u32 %0, %1, 4, 8;", ptx_output(y[2]), ptx_input(a));
  MC_ASM("bfi.b32 %0, %1, %2, 8, 4;", ptx_output(y[3]), ptx_input(a), ptx_input(b));
  MC_ASM("popc.b32 %0, %1;", ptx_output(y[4]), ptx_input(a));
  MC_ASM("{ .reg .u32 t; add.u32 t, %1, %2; shl.b32 t, t, 1; mov.u32 %0, t; }", ptx_output(y[5]),
         ptx_input(a), ptx_input(b));
  MC_ASM("mad.lo.s32 %0, %1, %2, %3;", ptx_output(i), ptx_input(-3), ptx_input(7), ptx_input(1));
  y[6] = static_cast<unsigned>(i);
  MC_ASM("mul.wide.u32 %0, %1, %2;", ptx_output(w), ptx_input(a), ptx_input(b));
  y[7] = static_cast<unsigned>(w >> 32);
  MC_ASM("shf.l.wrap.b32 %0, %1, %2, 8;", ptx_output(y[8]), ptx_input(a), ptx_input(b));
  MC_ASM("{\n\t.reg .pred p;\n\tsetp.lt.s32 p, %1, 0; // a comment\n\tselp.u32 %0, 1, 2, p;\n\t}",
         ptx_output(d), ptx_input(static_cast<int>(a)));
  y[9] = d;
  MC_ASM("{ .reg .pred p; setp.ne.u32 p, %1, 0; @p add.u32 %0, %0, 5; @!p mov.u32 %0, 0; }",
         ptx_update(d), ptx_input(a));
  y[10] = d;
  MC_ASM("clz.b32 %0, %1;", ptx_output(y[11]), ptx_input(b));
  MC_ASM("mov.b64 {%0, %1}, %2;", ptx_output(y[12]), ptx_output(y[13]), ptx_input(w));
  MC_ASM("dp4a.s32.s32 %0, %1, %2, %3;", ptx_output(y[14]), ptx_input(0x01FF02FEu),
         ptx_input(0x01010101u), ptx_input(10));
}

TEST(Ptx, CalculatesWithIntegers) {
  Vector<unsigned> y(15);
  run(1, 1, integers_kernel, y.data());
  const unsigned a = 0xF0F01234u, b = 0x0FF05678u, c = 0x00FF9ABCu;
  EXPECT_EQ(y[0], (a & b) | (a & c) | (b & c));
  EXPECT_EQ(y[1], 0x56127834u);
  EXPECT_EQ(y[2], (a >> 4) & 255u);
  EXPECT_EQ(y[3], (b & ~0xF00u) | (a & 15u) << 8);
  EXPECT_EQ(y[4], static_cast<unsigned>(__builtin_popcount(a)));
  EXPECT_EQ(y[5], (a + b) << 1);
  EXPECT_EQ(static_cast<int>(y[6]), -20);
  EXPECT_EQ(y[7], static_cast<unsigned>((static_cast<uint64_t>(a) * b) >> 32));
  EXPECT_EQ(y[8], b << 8 | a >> 24);
  EXPECT_EQ(y[9], 1u);
  EXPECT_EQ(y[10], 6u);
  EXPECT_EQ(y[11], 4u);
  EXPECT_EQ(y[12], static_cast<unsigned>(static_cast<uint64_t>(a) * b));
  EXPECT_EQ(y[13], y[7]);
  EXPECT_EQ(y[14], static_cast<unsigned>(10 + 1 - 1 + 2 - 2));
}

void reals_kernel(float* y) {
  float a = 1.5f, b = -2.25f;
  MC_ASM("fma.rn.f32 %0, %1, %2, %3;", ptx_output(y[0]), ptx_input(a), ptx_input(b), ptx_input(a));
  MC_ASM("ex2.approx.ftz.f32 %0, %1;", ptx_output(y[1]), ptx_input(a));
  MC_ASM("rcp.approx.f32 %0, %1;", ptx_output(y[2]), ptx_input(b));
  MC_ASM("max.f32 %0, %1, 0f3F000000;", ptx_output(y[3]), ptx_input(b));
  MC_ASM("cvt.rzi.s32.f32 %0, %1;", ptx_output(reinterpret_cast<int&>(y[4])), ptx_input(b));
  unsigned short h = 0;
  MC_ASM("cvt.rn.f16.f32 %0, %1;", ptx_output(h), ptx_input(a));
  MC_ASM("cvt.f32.f16 %0, %1;", ptx_output(y[5]), ptx_input(h));
  MC_ASM("tanh.approx.f32 %0, %1;", ptx_output(y[6]), ptx_input(a));
}

TEST(Ptx, CalculatesWithReals) {
  Vector<float> y(7);
  run(1, 1, reals_kernel, y.data());
  EXPECT_EQ(y[0], 1.5f * -2.25f + 1.5f);
  EXPECT_FLOAT_EQ(y[1], std::exp2(1.5f));
  EXPECT_EQ(y[2], 1.0f / -2.25f);
  EXPECT_EQ(y[3], 0.5f);
  EXPECT_EQ(reinterpret_cast<int&>(y[4]), -2);
  EXPECT_EQ(y[5], 1.5f);
  EXPECT_FLOAT_EQ(y[6], std::tanh(1.5f));
}

void memory_kernel(const float* x, float* y, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  unsigned lane = 0;
  MC_ASM("mov.u32 %0, %%laneid;", ptx_output(lane));
  float a = 0, b = 0, c = 0, d = 0;
  if (4 * i >= n) return;
  MC_ASM("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];", ptx_output(a),
         ptx_output(b), ptx_output(c), ptx_output(d), ptx_input(x + 4 * i));
  MC_ASM("st.global.cs.f32 [%0+4], %1;", ptx_input(y + 2 * i), ptx_input(a + b + c + d));
  MC_ASM("st.global.f32 [%0], %1;", ptx_input(y + 2 * i), ptx_input(static_cast<float>(lane)));
}

TEST(Ptx, LoadsAndStores) {
  Vector<float> x(256), y(128);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  run(2, 32, memory_kernel, x.data(), y.data(), 256);
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(y[2 * i], static_cast<float>(i % 32));
    EXPECT_EQ(y[2 * i + 1], static_cast<float>(16 * i + 6));
  }
}

TEST(Ptx, ChecksBoundsOfItsLoads) {
  Vector<float> x(128), y(128);
  launch_kernel(2, 32, memory_kernel, x.data(), y.data(), 256);
  EXPECT_NE(cudaGetLastError(), cudaSuccess);
  EXPECT_THAT(findings(), HasSubstr("out_of_bounds_read"));
  mc_emu_reset();
}

void copy_kernel(const float* x, float* y) {
  __shared__ float tile[64];
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(tile + threadIdx.x));
  MC_ASM("cp.async.ca.shared.global [%0], [%1], 4;", ptx_input(to), ptx_input(x + threadIdx.x));
  ::mc_emu::ptx("cp.async.commit_group;", __LINE__, 1);
  ::mc_emu::ptx("cp.async.wait_group 0;", __LINE__, 1);
  __syncthreads();
  y[threadIdx.x] = tile[63 - threadIdx.x];
}

TEST(Ptx, CopiesAsynchronously) {
  Vector<float> x(64), y(64);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  run(1, 64, copy_kernel, x.data(), y.data());
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(y[i], static_cast<float>(63 - i));
}

void unawaited_copy_kernel(const float* x, float* y) {
  __shared__ float tile[32];
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(tile + threadIdx.x));
  MC_ASM("cp.async.ca.shared.global [%0], [%1], 4;", ptx_input(to), ptx_input(x + threadIdx.x));
  ::mc_emu::ptx("cp.async.commit_group;", __LINE__, 1);
  __syncthreads();
  y[threadIdx.x] = tile[threadIdx.x];
}

TEST(Ptx, ReadingACopyBeforeItIsAwaitedIsFound) {
  Vector<float> x(32), y(32);
  launch_kernel(1, 32, unawaited_copy_kernel, x.data(), y.data());
  EXPECT_THAT(findings(), HasSubstr("uninitialised_shared"));
  mc_emu_reset();
}

void warp_kernel(unsigned* y) {
  const unsigned lane = threadIdx.x;
  unsigned a = 0, b = 0, c = 0;
  MC_ASM("shfl.sync.bfly.b32 %0, %1, 1, 0x1f, 0xffffffff;", ptx_output(a), ptx_input(lane));
  MC_ASM("{ .reg .pred p; setp.lt.u32 p, %1, 5; vote.sync.ballot.b32 %0, p, 0xffffffff; }",
         ptx_output(b), ptx_input(lane));
  MC_ASM("shfl.sync.down.b32 %0, %1, 4, 0x1f, 0xffffffff;", ptx_output(c), ptx_input(lane));
  y[lane] = a;
  y[32 + lane] = b;
  y[64 + lane] = c;
}

TEST(Ptx, ShufflesAndVotes) {
  Vector<unsigned> y(96);
  run(1, 32, warp_kernel, y.data());
  for (unsigned lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(y[lane], lane ^ 1u);
    EXPECT_EQ(y[32 + lane], 31u);
    EXPECT_EQ(y[64 + lane], lane + 4 < 32 ? lane + 4 : lane);
  }
}

// C = A B of 16 x 16 and 16 x 8, by ldmatrix and mma.
void mma_kernel(const unsigned short* a, const unsigned short* b, float* c) {
  alignas(16) __shared__ unsigned short sa[256];
  alignas(16) __shared__ unsigned short sb[128];
  for (unsigned i = threadIdx.x; i < 256; i += 32) sa[i] = a[i];
  for (unsigned i = threadIdx.x; i < 128; i += 32) sb[i] = b[i];
  __syncwarp();
  const unsigned lane = threadIdx.x;
  unsigned ra[4], rb[2];
  const auto at_a = static_cast<unsigned>(
      __cvta_generic_to_shared(sa + (lane % 8 + lane / 8 % 2 * 8) * 16 + lane / 16 * 8));
  const auto at_b = static_cast<unsigned>(__cvta_generic_to_shared(sb + lane % 16 * 8));
  MC_ASM("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];", ptx_output(ra[0]),
         ptx_output(ra[1]), ptx_output(ra[2]), ptx_output(ra[3]), ptx_input(at_a));
  MC_ASM("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];", ptx_output(rb[0]),
         ptx_output(rb[1]), ptx_input(at_b));
  float d[4] = {1, 1, 1, 1};
  MC_ASM(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};",
      ptx_update(d[0]), ptx_update(d[1]), ptx_update(d[2]), ptx_update(d[3]), ptx_input(ra[0]),
      ptx_input(ra[1]), ptx_input(ra[2]), ptx_input(ra[3]), ptx_input(rb[0]), ptx_input(rb[1]));
  for (unsigned e = 0; e < 4; ++e) {
    c[(lane / 4 + e / 2 * 8) * 8 + lane % 4 * 2 + e % 2] = d[e];
  }
}

TEST(Ptx, MultipliesMatrices) {
  Vector<unsigned short> a(256), b(128);
  Vector<float> c(128);
  const auto half = [](float x) { return ::mc_emu::encode<::mc_emu::Fp16>(x); };
  const auto at_a = [](int i, int k) { return static_cast<float>((i * 5 + k * 3) % 11 - 5); };
  const auto at_b = [](int k, int j) { return static_cast<float>((k * 7 + j) % 9 - 4); };
  for (int i = 0; i < 16; ++i) {
    for (int k = 0; k < 16; ++k) a[static_cast<size_t>(i * 16 + k)] = half(at_a(i, k));
  }
  for (int k = 0; k < 16; ++k) {
    for (int j = 0; j < 8; ++j) b[static_cast<size_t>(k * 8 + j)] = half(at_b(k, j));
  }
  run(1, 32, mma_kernel, a.data(), b.data(), c.data());
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) {
      float sum = 1;
      for (int k = 0; k < 16; ++k) sum += at_a(i, k) * at_b(k, j);
      EXPECT_EQ(c[static_cast<size_t>(i * 8 + j)], sum) << i << ' ' << j;
    }
  }
}

void unknown_kernel(unsigned* y) {
  MC_ASM("wgmma.fence.sync.aligned;", ptx_input(1));
  y[0] = 1;
}

TEST(Ptx, AnUnknownInstructionIsNotSupported) {
  Vector<unsigned> y(1);
  launch_kernel(1, 1, unknown_kernel, y.data());
  EXPECT_THAT(findings(), HasSubstr("inline PTX: wgmma.fence.sync.aligned"));
  mc_emu_reset();
}

}  // namespace
