// SPDX-License-Identifier: Apache-2.0
//
// Kernels of the tests and of the benchmark. basic.ptx is made of them:
//   nvcc -ptx -lineinfo -arch=compute_80 basic.cu
constexpr int kTile = 16;

extern "C" __global__ void add(const float* a, const float* b, float* c, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) c[i] = a[i] + b[i];
}

extern "C" __global__ void row_sums(const float* x, float* y, int n) {
  __shared__ float partial[32];
  float v = 0;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) {
    v += x[static_cast<int>(blockIdx.x) * n + i];
  }
  for (int delta = 16; delta > 0; delta /= 2) v += __shfl_down_sync(0xFFFFFFFFu, v, delta);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  v = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0;
  for (int delta = 16; delta > 0; delta /= 2) v += __shfl_down_sync(0xFFFFFFFFu, v, delta);
  if (threadIdx.x == 0) y[blockIdx.x] = v;
}

extern "C" __global__ void softmax(const float* x, float* y, int n) {
  extern __shared__ float s[];
  const unsigned t = threadIdx.x;
  const float* row = x + static_cast<size_t>(blockIdx.x) * n;
  float* out = y + static_cast<size_t>(blockIdx.x) * n;
  float most = -1e30f;
  for (int i = t; i < n; i += blockDim.x) most = fmaxf(most, row[i]);
  s[t] = most;
  __syncthreads();
  for (unsigned d = blockDim.x / 2; d > 0; d /= 2) {
    if (t < d) s[t] = fmaxf(s[t], s[t + d]);
    __syncthreads();
  }
  most = s[0];
  __syncthreads();
  float sum = 0;
  for (int i = t; i < n; i += blockDim.x) sum += expf(row[i] - most);
  s[t] = sum;
  __syncthreads();
  for (unsigned d = blockDim.x / 2; d > 0; d /= 2) {
    if (t < d) s[t] += s[t + d];
    __syncthreads();
  }
  sum = s[0];
  for (int i = t; i < n; i += blockDim.x) out[i] = expf(row[i] - most) / sum;
}

extern "C" __global__ void tiled_matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float as[kTile][kTile];
  __shared__ float bs[kTile][kTile];
  const unsigned row = blockIdx.y * kTile + threadIdx.y;
  const unsigned column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (unsigned k = 0; k < static_cast<unsigned>(n); k += kTile) {
    as[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
    bs[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

// Tiles of 64 x 64, 256 threads, 4 x 4 sums in each thread's registers.
extern "C" __global__ void register_matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float as[16][64 + 4];
  __shared__ float bs[16][64];
  const int t = threadIdx.x, tx = t % 16, ty = t / 16;
  const int row = blockIdx.y * 64, column = blockIdx.x * 64;
  float sums[4][4] = {};
  for (int k = 0; k < n; k += 16) {
    const float4 four = *reinterpret_cast<const float4*>(a + (row + t / 4) * n + k + t % 4 * 4);
    as[t % 4 * 4 + 0][t / 4] = four.x;
    as[t % 4 * 4 + 1][t / 4] = four.y;
    as[t % 4 * 4 + 2][t / 4] = four.z;
    as[t % 4 * 4 + 3][t / 4] = four.w;
    *reinterpret_cast<float4*>(&bs[t / 16][t % 16 * 4]) =
        *reinterpret_cast<const float4*>(b + (k + t / 16) * n + column + t % 16 * 4);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      float x[4], y[4];
      for (int q = 0; q < 4; ++q) x[q] = as[i][ty * 4 + q];
      for (int q = 0; q < 4; ++q) y[q] = bs[i][tx * 4 + q];
      for (int p = 0; p < 4; ++p) {
        for (int q = 0; q < 4; ++q) sums[p][q] += x[p] * y[q];
      }
    }
    __syncthreads();
  }
  for (int p = 0; p < 4; ++p) {
    for (int q = 0; q < 4; ++q) c[(row + ty * 4 + p) * n + column + tx * 4 + q] = sums[p][q];
  }
}

extern "C" __global__ void gelu(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678f));
}
