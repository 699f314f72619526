// SPDX-License-Identifier: Apache-2.0
// Fault: the input is copied with the direction of the output, and the error is not looked at.
// Expected: out_of_bounds_read where "Finding:" is.
#include <cstdio>

__global__ void increment(int* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 1;
}

int main() {
  const int n = 256;
  int h[n], *x;
  for (int i = 0; i < n; i++) h[i] = i;
  cudaMalloc(&x, n * sizeof(int));
  cudaMemcpy(x, h, n * sizeof(int), cudaMemcpyDeviceToHost);  // Finding: out_of_bounds_read
  increment<<<1, n>>>(x, n);
  cudaMemcpy(h, x, n * sizeof(int), cudaMemcpyDeviceToHost);
  printf("%d\n", h[10]);
  cudaFree(x);
}
