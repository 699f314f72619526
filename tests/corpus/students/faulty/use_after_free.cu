// SPDX-License-Identifier: Apache-2.0
// Fault: the weights are freed before the last launch that reads them.
// Expected: out_of_bounds_read where "Finding:" is.
#include <cstdio>

__global__ void weigh(const float* w, float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= w[i];  // Finding: out_of_bounds_read
}

int main() {
  const int n = 512;
  float h[n], *w, *x;
  for (int i = 0; i < n; i++) h[i] = 2;
  cudaMalloc(&w, sizeof(h));
  cudaMalloc(&x, sizeof(h));
  cudaMemcpy(w, h, sizeof(h), cudaMemcpyHostToDevice);
  cudaMemcpy(x, h, sizeof(h), cudaMemcpyHostToDevice);
  for (int step = 0; step < 3; step++) {
    weigh<<<(n + 127) / 128, 128>>>(w, x, n);
    if (step == 1) cudaFree(w);
  }
  cudaMemcpy(h, x, sizeof(h), cudaMemcpyDeviceToHost);
  printf("%g\n", h[0]);
  cudaFree(x);
}
