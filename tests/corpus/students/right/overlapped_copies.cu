// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

__global__ void root(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = sqrtf(x[i]);
}

int main() {
  const int n = 1 << 12, parts = 4, part = n / parts;
  float *h, *d;
  cudaMallocHost(&h, n * sizeof(float));
  cudaMalloc(&d, n * sizeof(float));
  for (int i = 0; i < n; i++) h[i] = (float)(i % 100) * (i % 100);
  cudaStream_t s[parts];
  for (int k = 0; k < parts; k++) {
    cudaStreamCreate(&s[k]);
    int at = k * part;
    cudaMemcpyAsync(d + at, h + at, part * sizeof(float), cudaMemcpyHostToDevice, s[k]);
    root<<<part / 128, 128, 0, s[k]>>>(d + at, part);
    cudaMemcpyAsync(h + at, d + at, part * sizeof(float), cudaMemcpyDeviceToHost, s[k]);
  }
  for (auto& one : s) {
    cudaStreamSynchronize(one);
    cudaStreamDestroy(one);
  }
  for (int i = 0; i < n; i++)
    if (h[i] != i % 100) return 1;
  cudaFreeHost(h);
  cudaFree(d);
}
