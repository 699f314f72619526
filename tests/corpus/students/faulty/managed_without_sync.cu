// SPDX-License-Identifier: Apache-2.0
// Fault: the host reads managed memory while the kernel may still write it.
// Expected: host_race where "Finding:" is.
#include <iostream>

__global__ void add(int n, float* x, float* y) {
  int index = blockIdx.x * blockDim.x + threadIdx.x;
  int stride = blockDim.x * gridDim.x;
  for (int i = index; i < n; i += stride) y[i] = x[i] + y[i];
}

int main() {
  int N = 1 << 14;
  float *x, *y;
  cudaMallocManaged(&x, N * sizeof(float));
  cudaMallocManaged(&y, N * sizeof(float));
  for (int i = 0; i < N; i++) {
    x[i] = 1.0f;
    y[i] = 2.0f;
  }
  add<<<(N + 255) / 256, 256>>>(N, x, y);
  float maxError = 0.0f;
  for (int i = 0; i < N; i++)
    maxError = fmax(maxError, fabs(y[i] - 3.0f));  // Finding: host_race
  std::cout << "Max error: " << maxError << std::endl;
  cudaFree(x);
  cudaFree(y);
}
