// SPDX-License-Identifier: Apache-2.0
// Fault: each thread keeps its divisors in an array of eight; some numbers have more.
// Expected: out_of_bounds_write where "Finding:" is.
#include <cstdio>

__global__ void divisors(int* sums, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x + 1;
  if (i > n) return;
  int found[8];
  int count = 0;
  for (int d = 1; d <= i; d++) {
    if (i % d == 0) found[count++] = d;  // Finding: out_of_bounds_write
  }
  int sum = 0;
  for (int k = count - 1; k >= 0; k--) sum += found[k] * (k + 1);
  sums[i - 1] = sum;
}

int main() {
  const int n = 100;
  int h[n], *sums;
  cudaMalloc(&sums, sizeof(h));
  divisors<<<(n + 31) / 32, 32>>>(sums, n);
  cudaMemcpy(h, sums, sizeof(h), cudaMemcpyDeviceToHost);
  printf("%d\n", h[59]);
  cudaFree(sums);
}
