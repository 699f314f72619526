// SPDX-License-Identifier: Apache-2.0
// Fault: the last thread reads the element behind the last one.
// Expected: out_of_bounds_read where "Finding:" is.
#include <cstdio>

__global__ void differences(const float* x, float* d, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    d[i] = x[i + 1] - x[i];  // Finding: out_of_bounds_read
}

int main() {
  const int n = 1024;
  static float h[n];
  for (int i = 0; i < n; i++) h[i] = i * i;
  float *x, *d;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&d, n * sizeof(float));
  cudaMemcpy(x, h, n * sizeof(float), cudaMemcpyHostToDevice);
  differences<<<n / 256, 256>>>(x, d, n);
  cudaMemcpy(h, d, n * sizeof(float), cudaMemcpyDeviceToHost);
  printf("%f %f\n", h[0], h[1]);
  cudaFree(x);
  cudaFree(d);
}
