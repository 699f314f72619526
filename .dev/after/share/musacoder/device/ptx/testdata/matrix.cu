// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices by tensor cores, for the tests and the benchmark.
#include <cuda_fp16.h>
#include <cstdint>

__device__ inline unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ inline void copy16(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from));
}

// The product c = a b of halves with sums of floats: tiles of 64 x 64, 4 warps with 32 x 32 each,
// two stages.
extern "C" __global__ void mma_matmul(const half* a, const half* b, float* c, int n) {
  __shared__ __align__(16) half as[2][64][40];
  __shared__ __align__(16) half bs[2][32][72];
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  const int row = blockIdx.y * 64, column = blockIdx.x * 64;
  const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
  float sums[2][4][4] = {};
  auto fetch = [&](int stage, int k) {
    for (int i = t; i < 256; i += 128) {
      copy16(&as[stage][i / 4][i % 4 * 8], a + (row + i / 4) * n + k + i % 4 * 8);
      copy16(&bs[stage][i / 8][i % 8 * 8], b + (k + i / 8) * n + column + i % 8 * 8);
    }
    asm volatile("cp.async.commit_group;");
  };
  fetch(0, 0);
  for (int k = 0, stage = 0; k < n; k += 32, stage ^= 1) {
    if (k + 32 < n) {
      fetch(stage ^ 1, k + 32);
      asm volatile("cp.async.wait_group 1;");
    } else {
      asm volatile("cp.async.wait_group 0;");
    }
    __syncthreads();
    for (int part = 0; part < 32; part += 16) {
      unsigned x[2][4], y[2][4];
      for (int m = 0; m < 2; ++m) {
        const unsigned at =
            shared_address(&as[stage][warp_row + m * 16 + lane % 16][part + lane / 16 * 8]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(x[m][0]), "=r"(x[m][1]), "=r"(x[m][2]), "=r"(x[m][3])
                     : "r"(at));
      }
      for (int m = 0; m < 2; ++m) {
        const unsigned at =
            shared_address(&bs[stage][part + lane % 16][warp_column + m * 16 + lane / 16 * 8]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(y[m][0]), "=r"(y[m][1]), "=r"(y[m][2]), "=r"(y[m][3])
                     : "r"(at));
      }
      for (int m = 0; m < 2; ++m) {
        for (int p = 0; p < 4; ++p) {
          float* s = sums[m][p];
          asm volatile(
              "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
              "{%8,%9}, {%0,%1,%2,%3};"
              : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
              : "r"(x[m][0]), "r"(x[m][1]), "r"(x[m][2]), "r"(x[m][3]), "r"(y[p / 2][p % 2 * 2]),
                "r"(y[p / 2][p % 2 * 2 + 1]));
        }
      }
    }
    __syncthreads();
  }
  for (int m = 0; m < 2; ++m) {
    for (int p = 0; p < 4; ++p) {
      for (int e = 0; e < 4; ++e) {
        const int i = row + warp_row + m * 16 + lane / 4 + e / 2 * 8;
        const int j = column + warp_column + p * 8 + lane % 4 * 2 + e % 2;
        c[i * n + j] = sums[m][p][e];
      }
    }
  }
}

// One product of 16 x 8 matrices of bytes, k = 32, and one of single bits, k = 256.
extern "C" __global__ void mma_small(const int* a, const int* b, int* c, int* d) {
  const int l = threadIdx.x;
  int s[4] = {0, 0, 0, 0}, r[4] = {0, 0, 0, 0};
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3])
      : "r"(a[l]), "r"(a[32 + l]), "r"(a[64 + l]), "r"(a[96 + l]), "r"(b[l]), "r"(b[32 + l]));
  asm volatile(
      "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%0,%1,%2,%3};"
      : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3])
      : "r"(a[l]), "r"(a[32 + l]), "r"(a[64 + l]), "r"(a[96 + l]), "r"(b[l]), "r"(b[32 + l]));
  for (int e = 0; e < 4; ++e) {
    c[e * 32 + l] = s[e];
    d[e * 32 + l] = r[e];
  }
}

extern "C" __global__ void mma_doubles(const double* a, const double* b, double* c) {
  const int l = threadIdx.x;
  double s[2] = {1, 2};
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
               : "+d"(s[0]), "+d"(s[1])
               : "d"(a[l]), "d"(b[l]));
  c[2 * l] = s[0];
  c[2 * l + 1] = s[1];
}
