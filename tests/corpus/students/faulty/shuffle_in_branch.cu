// SPDX-License-Identifier: Apache-2.0
// Fault: the mask names all lanes, and only half of them reach the shuffle.
// Expected: deadlock where "Finding:" is.
#include <cstdio>

__global__ void half_sum(const int* x, int* out) {
  __shared__ int all[32];
  int v = x[threadIdx.x];
  if (threadIdx.x < 16) {
    for (int d = 8; d > 0; d /= 2)
      v += __shfl_down_sync(0xffffffff, v, d);  // Finding: deadlock
  }
  all[threadIdx.x] = v;
  __syncthreads();
  out[threadIdx.x] = all[31 - threadIdx.x];
}

int main() {
  int h[32], *x, *out, sum = 0;
  for (int i = 0; i < 32; i++) h[i] = i;
  cudaMalloc(&x, sizeof(h));
  cudaMalloc(&out, sizeof(h));
  cudaMemcpy(x, h, sizeof(h), cudaMemcpyHostToDevice);
  half_sum<<<1, 32>>>(x, out);
  cudaMemcpy(&sum, out, sizeof(int), cudaMemcpyDeviceToHost);
  printf("%d\n", sum);
}
