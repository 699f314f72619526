// SPDX-License-Identifier: Apache-2.0
// Fault: the result of cudaMalloc is added to, and nothing set it to zero.
// Expected: uninitialised_global where "Finding:" is.
#include <cstdio>

__global__ void column_sums(const float* m, float* sums, int rows, int cols) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= cols) return;
  for (int r = 0; r < rows; r++) {
    sums[c] += m[r * cols + c];  // Finding: uninitialised_global
  }
}

int main() {
  const int rows = 30, cols = 70;
  float h[rows * cols];
  for (int i = 0; i < rows * cols; i++) h[i] = 1.0f;
  float *m, *sums, out[cols];
  cudaMalloc(&m, sizeof(h));
  cudaMalloc(&sums, sizeof(out));
  cudaMemcpy(m, h, sizeof(h), cudaMemcpyHostToDevice);
  column_sums<<<(cols + 31) / 32, 32>>>(m, sums, rows, cols);
  cudaMemcpy(out, sums, sizeof(out), cudaMemcpyDeviceToHost);
  printf("%f\n", out[3]);
  cudaFree(m);
  cudaFree(sums);
}
