// SPDX-License-Identifier: Apache-2.0
// Fault: the grid is rounded up, and no thread asks whether its element exists.
// Expected: out_of_bounds_read where "Finding:" is.
#include <cstdio>
#include <cstdlib>

__global__ void saxpy(float a, float* x, float* y) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  y[i] = a * x[i] + y[i];  // Finding: out_of_bounds_read
}

int main(void) {
  int N = 1000;
  float *x, *y, *d_x, *d_y;
  x = (float*)malloc(N * sizeof(float));
  y = (float*)malloc(N * sizeof(float));
  cudaMalloc(&d_x, N * sizeof(float));
  cudaMalloc(&d_y, N * sizeof(float));
  for (int i = 0; i < N; i++) {
    x[i] = 1.0f;
    y[i] = 2.0f;
  }
  cudaMemcpy(d_x, x, N * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(d_y, y, N * sizeof(float), cudaMemcpyHostToDevice);
  saxpy<<<(N + 255) / 256, 256>>>(2.0f, d_x, d_y);
  cudaMemcpy(y, d_y, N * sizeof(float), cudaMemcpyDeviceToHost);
  float maxError = 0.0f;
  for (int i = 0; i < N; i++) maxError = max(maxError, abs(y[i] - 4.0f));
  printf("Max error: %f\n", maxError);
}
