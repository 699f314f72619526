// SPDX-License-Identifier: Apache-2.0
//
// A block adds up its values in shared memory.  Fault: the loop lacks a barrier.
#include <cstdio>

__global__ void add_up(const int* x, int* out) {
  __shared__ int tile[256];
  tile[threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x];
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (threadIdx.x < s) tile[threadIdx.x] += tile[threadIdx.x + s];  // Finding: shared_race
  }
  if (threadIdx.x == 0) out[blockIdx.x] = tile[0];
}

int main() {
  int ones[1024], *x, *out, first = 0;
  for (int& one : ones) one = 1;
  cudaMalloc(&x, 1024 * sizeof(int));
  cudaMalloc(&out, 4 * sizeof(int));
  cudaMemcpy(x, ones, sizeof ones, cudaMemcpyHostToDevice);
  add_up<<<4, 256>>>(x, out);
  cudaMemcpy(&first, out, sizeof first, cudaMemcpyDeviceToHost);
  std::printf("sum of the first block: %d\n", first);
}
