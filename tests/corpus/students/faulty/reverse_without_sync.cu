// SPDX-License-Identifier: Apache-2.0
// Fault: threads read what others write into shared memory, without __syncthreads() between.
// Expected: shared_race where "Finding:" is.
#include <stdio.h>

#define N 128

__global__ void reverse(int* d) {
  __shared__ int s[N];
  int t = threadIdx.x;
  s[t] = d[t];
  d[t] = s[N - 1 - t];  // Finding: shared_race
}

int main() {
  int a[N], *d;
  for (int i = 0; i < N; ++i) a[i] = i;
  cudaMalloc(&d, sizeof(a));
  cudaMemcpy(d, a, sizeof(a), cudaMemcpyHostToDevice);
  reverse<<<1, N>>>(d);
  cudaMemcpy(a, d, sizeof(a), cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int i = 0; i < N; ++i) wrong += a[i] != N - 1 - i;
  printf("%d wrong\n", wrong);
  cudaFree(d);
}
