// SPDX-License-Identifier: Apache-2.0
// Fault: the first element is left out, so that vectors of four begin at an odd address.
// Expected: misaligned where "Finding:" is.
#include <cstdio>

__global__ void add4(const float* a, float* b, int quads) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= quads) return;
  float4 v = ((const float4*)a)[i];  // Finding: misaligned
  v.x += 1;
  v.y += 1;
  v.z += 1;
  v.w += 1;
  ((float4*)b)[i] = v;
}

int main() {
  const int n = 1025;
  float *a, *b;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMemset(a, 0, n * sizeof(float));
  int quads = (n - 1) / 4;
  add4<<<(quads + 127) / 128, 128>>>(a + 1, b, quads);
  float last = 0;
  cudaMemcpy(&last, b + n - 2, sizeof(float), cudaMemcpyDeviceToHost);
  printf("%f\n", last);
}
