// SPDX-License-Identifier: Apache-2.0
// Fault: the host reads the device's memory through the device's pointer.
// Expected: host_access where "Finding:" is.
#include <cstdio>

__global__ void cube(const int* in, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * in[i] * in[i];
}

int main() {
  const int n = 96;
  int h[n], *in, *out;
  for (int i = 0; i < n; i++) h[i] = i;
  cudaMalloc(&in, n * sizeof(int));
  cudaMalloc(&out, n * sizeof(int));
  cudaMemcpy(in, h, n * sizeof(int), cudaMemcpyHostToDevice);
  cube<<<n / 32, 32>>>(in, out, n);
  cudaDeviceSynchronize();
  for (int i = 0; i < n; i += 10) {
    printf("%d\n", out[i]);  // Finding: host_access
  }
}
