// SPDX-License-Identifier: Apache-2.0
// Fault: the kernel has extern __shared__ memory, and the launch gives it no bytes.
// Expected: out_of_bounds_write where "Finding:" is.
#include <cstdio>

__global__ void block_max(const float* x, float* out) {
  extern __shared__ float s[];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * blockDim.x + t];  // Finding: out_of_bounds_write
  __syncthreads();
  for (int d = blockDim.x / 2; d > 0; d /= 2) {
    if (t < d) s[t] = fmaxf(s[t], s[t + d]);
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}

int main() {
  const int n = 1024, blocks = 4;
  static float h[n];
  for (int i = 0; i < n; i++) h[i] = (i * 37) % 1000;
  float *x, *out, m[blocks] = {};
  cudaMalloc(&x, sizeof(h));
  cudaMalloc(&out, sizeof(m));
  cudaMemcpy(x, h, sizeof(h), cudaMemcpyHostToDevice);
  block_max<<<blocks, n / blocks>>>(x, out);
  cudaMemcpy(m, out, sizeof(m), cudaMemcpyDeviceToHost);
  printf("%f\n", m[0]);
}
