// SPDX-License-Identifier: Apache-2.0
//
// Rows are read as vectors of four floats.  Fault: a row of 1,002 floats does not begin at a
// multiple of 16 bytes.
#include <cstdio>

__global__ void row_sums(const float* x, float* out, int columns) {
  const float4* row = reinterpret_cast<const float4*>(x + blockIdx.x * columns);
  float sum = 0;
  for (int i = threadIdx.x; i < columns / 4; i += 32) {
    float4 v = row[i];  // Finding: misaligned
    sum += v.x + v.y + v.z + v.w;
  }
  atomicAdd(&out[blockIdx.x], sum);
}

int main() {
  const int rows = 3, columns = 1002;
  float *x, *out, sum = 0;
  cudaMalloc(&x, rows * columns * sizeof(float));
  cudaMalloc(&out, rows * sizeof(float));
  cudaMemset(x, 0, rows * columns * sizeof(float));
  cudaMemset(out, 0, rows * sizeof(float));
  row_sums<<<rows, 32>>>(x, out, columns);
  cudaMemcpy(&sum, out, sizeof sum, cudaMemcpyDeviceToHost);
  std::printf("sum of the first row: %g\n", sum);
}
