// SPDX-License-Identifier: Apache-2.0
//
// Each thread doubles a value.  Fault: the last thread reads and writes behind the array.
#include <cstdio>

__global__ void twice(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) x[i] *= 2;  // Finding: out_of_bounds_read
}

int main() {
  float *x, last = 0;
  const int n = 1000;
  cudaMalloc(&x, n * sizeof(float));
  cudaMemset(x, 0, n * sizeof(float));
  twice<<<(n + 255) / 256, 256>>>(x, n);
  cudaMemcpy(&last, x + n - 1, sizeof last, cudaMemcpyDeviceToHost);
  std::printf("last: %g, %s\n", last, cudaGetErrorString(cudaGetLastError()));
}
