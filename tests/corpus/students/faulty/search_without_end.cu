// SPDX-License-Identifier: Apache-2.0
// Fault: the lower bound of a binary search stays where it is once two elements are left.
// Expected: step_limit where "Finding:" is.
#include <cstdio>

__global__ void find(const int* sorted, int n, const int* keys, int* where, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= m) return;
  int lo = 0, hi = n;
  while (lo < hi) {  // Finding: step_limit
    int mid = (lo + hi) / 2;
    if (sorted[mid] <= keys[i])
      lo = mid;
    else
      hi = mid;
  }
  where[i] = lo;
}

int main() {
  const int n = 100, m = 20;
  int h[n], k[m], *sorted, *keys, *where;
  for (int i = 0; i < n; i++) h[i] = 2 * i;
  for (int i = 0; i < m; i++) k[i] = 5 * i;
  cudaMalloc(&sorted, sizeof(h));
  cudaMalloc(&keys, sizeof(k));
  cudaMalloc(&where, sizeof(k));
  cudaMemcpy(sorted, h, sizeof(h), cudaMemcpyHostToDevice);
  cudaMemcpy(keys, k, sizeof(k), cudaMemcpyHostToDevice);
  find<<<1, 32>>>(sorted, n, keys, where, m);
  cudaMemcpy(k, where, sizeof(k), cudaMemcpyDeviceToHost);
  printf("%d\n", k[3]);
}
