// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <iostream>

__global__ void add(int n, float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + y[i];
}

int main() {
  const int n = 3000;
  float *x, *y, worst = 0;
  int* steps;
  cudaMallocManaged(&x, n * sizeof(float));
  cudaMallocManaged(&y, n * sizeof(float));
  cudaMallocManaged(&steps, sizeof(int));
  *steps = 0;
  for (int i = 0; i < n; i++) {
    x[i] = 1;
    y[i] = 2;
  }
  for (int k = 0; k < 3; k++) {
    add<<<(n + 255) / 256, 256>>>(n, x, y);
    ++*steps;  // No kernel has this one.
  }
  cudaDeviceSynchronize();
  for (int i = 0; i < n; i++) worst = std::fmax(worst, std::fabs(y[i] - 5));
  std::cout << *steps << " steps, worst " << worst << std::endl;
  cudaFree(x);
  cudaFree(y);
  cudaFree(steps);
  return worst != 0;
}
