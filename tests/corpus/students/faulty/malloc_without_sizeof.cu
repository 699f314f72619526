// SPDX-License-Identifier: Apache-2.0
// Fault: cudaMalloc gets the number of elements in place of the bytes.
// Expected: out_of_bounds_write where "Finding:" is.
#include <cstdio>

__global__ void iota(double* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = i;  // Finding: out_of_bounds_write
}

int main() {
  const int n = 500;
  static double h[n];
  double* x;
  cudaMalloc(&x, n);
  iota<<<(n + 127) / 128, 128>>>(x, n);
  cudaMemcpy(h, x, n * sizeof(double), cudaMemcpyDeviceToHost);
  printf("%f\n", h[n - 1]);
  cudaFree(x);
}
