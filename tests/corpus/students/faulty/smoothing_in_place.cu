// SPDX-License-Identifier: Apache-2.0
// Fault: each thread writes its element where the neighbours still read the old one.
// Expected: global_race where "Finding:" is.
#include <cstdio>

__global__ void smooth(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1) {
    x[i] = (x[i - 1] + x[i] + x[i + 1]) / 3;  // Finding: global_race
  }
}

int main() {
  const int n = 1 << 10;
  static float h[n];
  for (int i = 0; i < n; i++) h[i] = i % 2;
  float* x;
  cudaMalloc(&x, sizeof(h));
  cudaMemcpy(x, h, sizeof(h), cudaMemcpyHostToDevice);
  smooth<<<n / 128, 128>>>(x, n);
  cudaMemcpy(h, x, sizeof(h), cudaMemcpyDeviceToHost);
  printf("%f\n", h[500]);
}
