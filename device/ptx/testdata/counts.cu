// SPDX-License-Identifier: Apache-2.0
//
// Kernels of counts_test.cc, whose accesses are known.

constexpr int kWarp = 32;

extern "C" __global__ void copy(const float* x, float* y, int stride, int first) {
  const int i = first + stride * (blockIdx.x * blockDim.x + threadIdx.x);
  y[i] = x[i];
}

extern "C" __global__ void copy4(const float4* x, float4* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i];
}

// The lanes of the lower half alone.
extern "C" __global__ void half(const float* x, float* y) {
  if (threadIdx.x % kWarp < kWarp / 2) y[threadIdx.x] = x[threadIdx.x];
}

// One store of a row and one load of a column, of a tile with `width` floats a row.
template <int kWidth>
__device__ void transpose(float* y) {
  __shared__ float tile[kWarp * kWidth];
  tile[threadIdx.y * kWidth + threadIdx.x] = threadIdx.x;
  __syncthreads();
  y[threadIdx.y * kWarp + threadIdx.x] = tile[threadIdx.x * kWidth + threadIdx.y];
}
extern "C" __global__ void columns(float* y) { transpose<kWarp>(y); }
extern "C" __global__ void padded_columns(float* y) { transpose<kWarp + 1>(y); }

extern "C" __global__ void shared4(float4* y) {
  __shared__ float4 row[kWarp];
  row[threadIdx.x] = make_float4(1, 2, 3, 4);
  __syncwarp();
  y[threadIdx.x] = row[kWarp - 1 - threadIdx.x];
}

extern "C" __global__ void same_word(int* y) {
  __shared__ int word;
  if (threadIdx.x == 0) word = 0;
  __syncwarp();
  atomicAdd(&word, 1);
  __syncwarp();
  y[threadIdx.x] = word;
}

// Loads of random places, which the test counts by sets.
extern "C" __global__ void gather(const int* places, const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&y[places[i]], x[places[i]]);
}
