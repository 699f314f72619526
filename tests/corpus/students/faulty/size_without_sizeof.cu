// SPDX-License-Identifier: Apache-2.0
// Fault: n bytes are copied where n floats are meant, so that three quarters are unwritten.
// Expected: uninitialised_global where "Finding:" is.
#include <cstdio>

__global__ void normalise(const float* x, float* y, float mean, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] - mean;  // Finding: uninitialised_global
}

int main() {
  const int n = 2048;
  static float h[n];
  for (int i = 0; i < n; i++) h[i] = i;
  float *x, *y;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  cudaMemcpy(x, h, n, cudaMemcpyHostToDevice);
  normalise<<<n / 256, 256>>>(x, y, 1023.5f, n);
  cudaMemcpy(h, y, n * sizeof(float), cudaMemcpyDeviceToHost);
  printf("%f %f\n", h[0], h[n - 1]);
  cudaFree(x);
  cudaFree(y);
}
