// SPDX-License-Identifier: Apache-2.0
// Fault: the second stream reads what the first one writes, without an event between them.
// Expected: stream_race in the kernel where "Finding:" is.
#include <cstdio>

__global__ void fill(int* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = i;
}

__global__ void twice(const int* x, int* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}

int main() {
  const int n = 4096;
  int *x, *y, last;
  cudaMalloc(&x, n * sizeof(int));
  cudaMalloc(&y, n * sizeof(int));
  cudaStream_t s1, s2;
  cudaStreamCreate(&s1);
  cudaStreamCreate(&s2);
  fill<<<n / 256, 256, 0, s1>>>(x, n);
  twice<<<n / 256, 256, 0, s2>>>(x, y, n);  // Finding: stream_race
  cudaDeviceSynchronize();
  cudaMemcpy(&last, y + n - 1, sizeof(int), cudaMemcpyDeviceToHost);
  printf("%d\n", last);
  cudaStreamDestroy(s1);
  cudaStreamDestroy(s2);
}
