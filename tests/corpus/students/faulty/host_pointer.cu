// SPDX-License-Identifier: Apache-2.0
// Fault: the kernel gets the host's array in place of the device's.
// Expected: out_of_bounds_read where "Finding:" is.
#include <cstdio>
#include <cstdlib>

__global__ void add(const int* a, const int* b, int* c, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) c[i] = a[i] + b[i];  // Finding: out_of_bounds_read
}

int main() {
  int n = 300;
  int* a = (int*)malloc(n * sizeof(int));
  int* b = (int*)malloc(n * sizeof(int));
  int* c = (int*)malloc(n * sizeof(int));
  for (int i = 0; i < n; i++) a[i] = b[i] = i;
  int *d_a, *d_c;
  cudaMalloc(&d_a, n * sizeof(int));
  cudaMalloc(&d_c, n * sizeof(int));
  cudaMemcpy(d_a, a, n * sizeof(int), cudaMemcpyHostToDevice);
  add<<<(n + 63) / 64, 64>>>(d_a, b, d_c, n);
  cudaMemcpy(c, d_c, n * sizeof(int), cudaMemcpyDeviceToHost);
  printf("%d\n", c[5]);
}
