// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

__global__ void sum(const float* x, float* out, int n) {
  __shared__ float s[256];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = i < n ? x[i] : 0;
  __syncthreads();
  for (int d = blockDim.x / 2; d > 0; d >>= 1) {
    if (t < d) s[t] += s[t + d];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}

int main() {
  const int n = 5000, blocks = (n + 255) / 256;
  static float h[n];
  float *x, *part, all = 0;
  for (int i = 0; i < n; i++) h[i] = 1;
  cudaMalloc(&x, sizeof(h));
  cudaMalloc(&part, (blocks + 1) * sizeof(float));
  cudaMemcpy(x, h, sizeof(h), cudaMemcpyHostToDevice);
  sum<<<blocks, 256>>>(x, part, n);
  sum<<<1, 256>>>(part, part + blocks, blocks);
  cudaMemcpy(&all, part + blocks, sizeof(float), cudaMemcpyDeviceToHost);
  printf("%f\n", all);
  return all == n ? 0 : 1;
}
