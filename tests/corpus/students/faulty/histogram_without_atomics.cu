// SPDX-License-Identifier: Apache-2.0
// Fault: threads count in global memory by ++.
// Expected: global_race where "Finding:" is.
#include <cstdio>
#include <cstdlib>

__global__ void count_digits(const int* digits, int* counts, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int stride = gridDim.x * blockDim.x;
  while (i < n) {
    counts[digits[i]]++;  // Finding: global_race
    i += stride;
  }
}

int main() {
  const int n = 3000;
  int* h = (int*)calloc(n, sizeof(int));
  for (int i = 0; i < n; i++) h[i] = (i * i) % 10;
  int *digits, *counts, out[10];
  cudaMalloc(&digits, n * sizeof(int));
  cudaMalloc(&counts, sizeof(out));
  cudaMemcpy(digits, h, n * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemset(counts, 0, sizeof(out));
  count_digits<<<8, 64>>>(digits, counts, n);
  cudaMemcpy(out, counts, sizeof(out), cudaMemcpyDeviceToHost);
  for (int i = 0; i < 10; i++) printf("%d: %d\n", i, out[i]);
}
