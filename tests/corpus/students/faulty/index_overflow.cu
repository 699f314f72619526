// SPDX-License-Identifier: Apache-2.0
// Fault: the place in a table of 65,536 x 65,536 bytes is computed as an int.
// Expected: out_of_bounds_write where "Finding:" is.
#include <cstdio>

__global__ void mark_diagonal(char* table, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) table[i * n + i] = 1;  // Finding: out_of_bounds_write
}

int main() {
  int n = 65536;
  char *table, last = 0;
  if (cudaMalloc(&table, (size_t)n * n) != cudaSuccess) return 1;
  mark_diagonal<<<n / 256, 256>>>(table, n);
  cudaMemcpy(&last, table + (size_t)n * n - 1, 1, cudaMemcpyDeviceToHost);
  printf("%d\n", last);
  cudaFree(table);
}
