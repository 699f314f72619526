// SPDX-License-Identifier: Apache-2.0
//
// A block shifts its values by one place.  Fault: threads beyond the end return before the barrier.
#include <cstdio>

__global__ void shift(const int* x, int* out, int n) {
  __shared__ int tile[128];
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= n) return;
  tile[threadIdx.x] = x[i];
  __syncthreads();
  out[i] = tile[(threadIdx.x + 1) % 128];  // Finding: uninitialised_shared
}

int main() {
  const int n = 200;
  int *x, *out, last = 0;
  cudaMalloc(&x, n * sizeof(int));
  cudaMalloc(&out, n * sizeof(int));
  cudaMemset(x, 0, n * sizeof(int));
  shift<<<(n + 127) / 128, 128>>>(x, out, n);
  cudaMemcpy(&last, out + n - 1, sizeof last, cudaMemcpyDeviceToHost);
  std::printf("last: %d\n", last);
}
