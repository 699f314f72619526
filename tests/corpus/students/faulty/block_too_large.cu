// SPDX-License-Identifier: Apache-2.0
// Fault: 64 x 64 threads are more than a block may have, and nothing asks for the error.
// Expected: launch_error where "Finding:" is.
#include <cstdio>

__global__ void transpose(const float* in, float* out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < n && y < n) out[x * n + y] = in[y * n + x];
}

int main() {
  const int n = 128;
  static float h[n * n];
  float *in, *out;
  cudaMalloc(&in, sizeof(h));
  cudaMalloc(&out, sizeof(h));
  for (int i = 0; i < n * n; i++) h[i] = i;
  cudaMemcpy(in, h, sizeof(h), cudaMemcpyHostToDevice);
  cudaMemset(out, 0, sizeof(h));
  dim3 threads(64, 64);
  transpose<<<dim3(n / 64, n / 64), threads>>>(in, out, n);  // Finding: launch_error
  cudaMemcpy(h, out, sizeof(h), cudaMemcpyDeviceToHost);
  printf("%f (expected 128)\n", h[1]);
}
