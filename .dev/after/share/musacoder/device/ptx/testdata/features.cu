// SPDX-License-Identifier: Apache-2.0
//
// Kernels that use one feature each, for the tests.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>
#include <cassert>
#include <cstdio>

__device__ int table[4] = {1, 2, 3, 4};
__device__ int* third = table + 2;
__constant__ float factors[3] = {1.5f, 2.5f, 3.5f};

using Unary = float (*)(float);
__device__ float twice(float x) { return 2 * x; }
__device__ float next(float x) { return x + 1; }
__device__ Unary functions[2] = {twice, next};

extern "C" __global__ void variables(int* out) {
  const int i = threadIdx.x;
  out[i] = table[i & 3] + *third + static_cast<int>(2 * factors[i % 3]);
}

extern "C" __global__ void pointers(const int* which, float* out) {
  out[threadIdx.x] = functions[which[threadIdx.x]](static_cast<float>(threadIdx.x));
}

__device__ __noinline__ int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
extern "C" __global__ void recursion(int* out) { out[threadIdx.x] = fibonacci(threadIdx.x % 12); }

__device__ __noinline__ int endless(const int* n) {
  volatile int own = *n + 1;
  return own == -1 ? 0 : endless(const_cast<const int*>(&own)) + own;
}
extern "C" __global__ void recursion_without_end(int* out) { *out = endless(out); }

extern "C" __global__ void loop_without_end(volatile int* flag) {
  while (*flag == 0) {
  }
}

extern "C" __global__ void prints(int n) {
  if (threadIdx.x == 1) printf("%d %5.2f %s %c %llx %%\n", n, 1.5, "text", 'x', 255ull);
}

extern "C" __global__ void asserts(const int* x) { assert(x[threadIdx.x] == 0); }

extern "C" __global__ void heap(int* out) {
  int* p = static_cast<int*>(malloc(4 * sizeof(int)));
  for (int k = 0; k < 4; ++k) p[k] = k + threadIdx.x;
  out[threadIdx.x] = p[0] + p[3];
  free(p);
}

extern "C" __global__ void local_array(const int* index, int* out) {
  int a[16];
  for (int k = 0; k < 16; ++k) a[k] = k * threadIdx.x;
  out[threadIdx.x] = a[index[threadIdx.x] & 15];
}

extern "C" __global__ void switches(const int* x, int* out) {
  const int i = threadIdx.x;
  switch (x[i]) {
    case 0:
      out[i] = 7;
      break;
    case 1:
      out[i] = i;
      break;
    case 2:
      out[i] = i * i;
      break;
    case 3:
      out[i] = -i;
      break;
    case 4:
      out[i] = i + 100;
      break;
    case 5:
      out[i] = i << 3;
      break;
    default:
      out[i] = -1;
  }
}

extern "C" __global__ void spin_lock(int* lock, int* count) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  volatile int* c = count;
  *c = *c + 1;
  __threadfence();
  atomicExch(lock, 0);
}

// Each block waits for all others.
extern "C" __global__ void grid_barrier(int* arrived, int* out) {
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < static_cast<int>(gridDim.x)) {
    }
    out[blockIdx.x] = *static_cast<volatile int*>(arrived);
  }
}

extern "C" __global__ void partial_meetings(float* y) {
  float v = threadIdx.x;
  if (threadIdx.x < 16) {
    v += __shfl_xor_sync(0xFFFFu, v, 1);
  } else {
    v -= __shfl_xor_sync(0xFFFF0000u, v, 1);
  }
  if (threadIdx.x & 1) {
    __syncwarp();
  } else {
    v *= 2;
    __syncwarp();
  }
  y[threadIdx.x] = v;
}

extern "C" __global__ void votes(const int* x, unsigned* out) {
  const int v = x[threadIdx.x];
  out[threadIdx.x] = __ballot_sync(0xFFFFFFFFu, v > 3) + (__any_sync(0xFFFFFFFFu, v == 9) ? 1 : 0) +
                     __match_any_sync(0xFFFFFFFFu, v) + __reduce_add_sync(0xFFFFFFFFu, v) +
                     static_cast<unsigned>(__syncthreads_count(v & 1)) +
                     (__syncthreads_or(v == 5) ? 1000 : 0) + (__syncthreads_and(v >= 0) ? 5000 : 0);
}

extern "C" __global__ void named_barriers(int* out) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  if (t < 64) {
    s[t] = t;
    asm volatile("bar.sync 1, 64;");
    out[t] = s[63 - t];
  } else {
    out[t] = t;
  }
}

extern "C" __global__ void atomics(int* x, float* f, unsigned* wrapped, unsigned long long* wide) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, static_cast<int>(threadIdx.x));
  atomicMax(x + 1, static_cast<int>(threadIdx.x));
  atomicMin(x + 2, -static_cast<int>(threadIdx.x));
  atomicXor(x + 3, 1 << (threadIdx.x & 15));
  atomicInc(wrapped, 9);
  atomicAdd(f, 0.5f);
  atomicAdd(wide, 1ull << 33);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(x, sum);
}

extern "C" __global__ void copies(const float* x, float* y) {
  __shared__ float s[128];
  const int t = threadIdx.x;
  __pipeline_memcpy_async(s + 4 * t, x + 4 * t, 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  for (int k = 0; k < 4; ++k) y[4 * t + k] = s[127 - (4 * t + k)];
}

extern "C" __global__ void copies_without_wait(const float* x, float* y) {
  __shared__ float s[32];
  __pipeline_memcpy_async(s + threadIdx.x, x + threadIdx.x, 4);
  __pipeline_commit();
  __syncthreads();
  y[threadIdx.x] = s[31 - threadIdx.x];
}

extern "C" __global__ void wmma_half(const half* a, const half* b, float* c) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, half, row_major> x;
  fragment<matrix_b, 16, 16, 16, half, col_major> y;
  fragment<accumulator, 16, 16, 16, float> sum;
  fill_fragment(sum, 1.0f);
  load_matrix_sync(x, a, 16);
  load_matrix_sync(y, b, 16);
  mma_sync(sum, x, y, sum);
  for (int k = 0; k < sum.num_elements; ++k) sum.x[k] *= 2;
  store_matrix_sync(c, sum, 16, mem_row_major);
}

extern "C" __global__ void wmma_bytes(const signed char* a, const signed char* b, int* c) {
  using namespace nvcuda::wmma;
  __shared__ __align__(128) signed char s[256];
  for (int k = threadIdx.x; k < 256; k += 32) s[k] = a[k];
  __syncwarp();
  fragment<matrix_a, 16, 16, 16, signed char, row_major> x;
  fragment<matrix_b, 16, 16, 16, signed char, row_major> y;
  fragment<accumulator, 16, 16, 16, int> sum;
  fill_fragment(sum, 0);
  load_matrix_sync(x, s, 16);
  load_matrix_sync(y, b, 16);
  mma_sync(sum, x, y, sum);
  store_matrix_sync(c, sum, 16, mem_col_major);
}

extern "C" __global__ void halves(const half* a, const __nv_bfloat16* b, half2* c, float* d) {
  const int i = threadIdx.x;
  const half2 two = __halves2half2(a[i], __hneg(a[i]));
  c[i] = __hfma2(two, __float2half2_rn(3.0f), two);
  const __nv_bfloat16 v = __hadd(b[i], __float2bfloat16(1.0f));
  d[i] = __bfloat162float(__hmax(v, b[i])) + __half2float(hexp2(a[i]));
}

extern "C" __global__ void wide(const unsigned* a, const unsigned* b, unsigned* out) {
  const int i = threadIdx.x;
  const unsigned long long x = static_cast<unsigned long long>(a[i]) << 20 | b[i];
  const __int128 product = static_cast<__int128>(x) * static_cast<__int128>(x + 7);
  out[i] = static_cast<unsigned>(product >> 40) ^ __byte_perm(a[i], b[i], 0x6172) ^
           __funnelshift_r(a[i], b[i], 5) ^ __brev(a[i]) ^ static_cast<unsigned>(__popc(b[i])) ^
           static_cast<unsigned>(__clz(static_cast<int>(a[i]))) ^
           static_cast<unsigned>(__dp4a(static_cast<int>(a[i]), static_cast<int>(b[i]), 3)) ^
           static_cast<unsigned>(__ffsll(static_cast<long long>(x)));
}

extern "C" __global__ void wait_for_time(long long* out) {
  const long long begin = clock64();
  while (clock64() - begin < 1000) {
  }
  out[threadIdx.x] = 1;
}

// The last block that arrives adds what all have written.
extern "C" __global__ void last_block(float* partial, int* arrived, float* sum) {
  __shared__ bool is_last;
  partial[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd(arrived, 1) == static_cast<int>(gridDim.x) - 1;
  __syncthreads();
  if (!is_last || threadIdx.x != 0) return;
  float all = 0;
  for (unsigned k = 0; k < gridDim.x * blockDim.x; ++k) all += partial[k];
  *sum = all;
}

// Sums over parts of k, by atomics; the last block of each place finishes it.
extern "C" __global__ void split_k(const float* x, float* sums, int* arrived, float* out) {
  __shared__ int count;
  const int t = threadIdx.x;
  atomicAdd(sums + t, x[blockIdx.x * blockDim.x + t]);
  __syncthreads();
  if (t == 0) {
    __threadfence();
    count = atomicAdd(arrived, 1);
  }
  __syncthreads();
  if (count == static_cast<int>(gridDim.x) - 1) out[t] = 2 * sums[t];
}

__device__ void wait_for_grid(int* arrived, int until) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1);
    while (*static_cast<volatile int*>(arrived) < until) {
    }
    __threadfence();
  }
  __syncthreads();
}

// Each block reads what its neighbour wrote, and then writes what the neighbour read.
extern "C" __global__ void phases(int* arrived, int* x, int* y) {
  const int n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = i;
  for (int k = 0; k < 3; ++k) {
    wait_for_grid(arrived, (2 * k + 1) * gridDim.x);
    y[i] = x[(i + blockDim.x) % n];
    wait_for_grid(arrived, (2 * k + 2) * gridDim.x);
    x[i] = y[i];
  }
}

// A block goes on when the one before it has published its sum.
extern "C" __global__ void chained_scan(const int* x, int* sums, volatile int* flags, int* out) {
  const int b = blockIdx.x;
  int before = 0;
  if (b > 0) {
    while (flags[b - 1] == 0) {
    }
    __threadfence();
    before = sums[b - 1];
  }
  sums[b] = before + x[b];
  __threadfence();
  flags[b] = 1;
  out[b] = before;
}

extern "C" __global__ void guarded_count(int* lock, int* count) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  __threadfence();
  *count += 1;
  __threadfence();
  atomicExch(lock, 0);
}

extern "C" __global__ void turns(int* next, int* out) {
  if (threadIdx.x % warpSize == 0) {
    out[(blockIdx.x * blockDim.x + threadIdx.x) / warpSize] = atomicAdd(next, 1);
  }
}

// One access of a word or of a pair of words by each thread.
__device__ void touch(int what, int at, float* y, float* out, int i) {
  float2* pair = reinterpret_cast<float2*>(y + at);
  switch (what) {
    case 0:
      out[i] = y[at];
      break;
    case 1:
      y[at] = i + 1;
      break;
    case 2:
      out[i] = pair->x + pair->y;
      break;
    case 3:
      *pair = make_float2(i + 1, i + 1.5f);
      break;
  }
}
extern "C" __global__ void touches(const int* what, const int* at, float* y, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  touch(what[i], at[i], y, out, i);
}
// An access of a byte, though not executed, makes bytes the granules of shadow memory.
extern "C" __global__ void touches_by_bytes(const int* what, const int* at, float* y, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  touch(what[i], at[i], y, out, i);
  if (what[i] == 4) *reinterpret_cast<char*>(out + i) = 1;
}

// Each block adds its number to a sum twice; between these all of them see the whole first sum.
extern "C" __global__ void sum_of_grid(int* sum, int* seen) {
  const auto grid = cooperative_groups::this_grid();
  if (threadIdx.x == 0) atomicAdd(sum, static_cast<int>(blockIdx.x) + 1);
  grid.sync();
  if (threadIdx.x == 0) seen[blockIdx.x] = *sum;
  grid.sync();
  if (threadIdx.x == 0) atomicAdd(sum, 1);
}
