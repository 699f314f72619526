// SPDX-License-Identifier: Apache-2.0
// Fault: threads of a block go through the loop, and its barrier, a different number of times.
// Expected: divergent_barrier where "Finding:" is.
#include <cstdio>

__global__ void accumulate(const int* x, int* out, int n) {
  __shared__ int s[128];
  int t = threadIdx.x;
  int sum = 0;
  for (int i = t; i < n; i += blockDim.x) {
    s[t] = x[i];
    __syncthreads();  // Finding: divergent_barrier
    sum += s[t ^ 1];
  }
  s[t] = sum;
  __syncthreads();
  if (t == 0) {
    for (int k = 1; k < 128; k++) sum += s[k];
    *out = sum;
  }
}

int main() {
  const int n = 200;
  int h[n], *x, *out;
  for (int i = 0; i < n; i++) h[i] = i;
  cudaMalloc(&x, sizeof(h));
  cudaMalloc(&out, sizeof(int));
  cudaMemcpy(x, h, sizeof(h), cudaMemcpyHostToDevice);
  accumulate<<<1, 128>>>(x, out, n);
  cudaMemcpy(h, out, sizeof(int), cudaMemcpyDeviceToHost);
  printf("%d\n", h[0]);
}
