// SPDX-License-Identifier: Apache-2.0
// Fault: n / 256 blocks leave the last 232 elements out, and the host prints what nothing wrote.
// Expected: uninitialised_copy where "Finding:" is.
#include <stdio.h>
#include <stdlib.h>

__global__ void square(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * in[i];
}

int main() {
  int n = 1000;
  size_t bytes = n * sizeof(float);
  float* h_in = (float*)malloc(bytes);
  float* h_out = (float*)malloc(bytes);
  for (int i = 0; i < n; i++) h_in[i] = (float)i;
  float *d_in, *d_out;
  cudaMalloc((void**)&d_in, bytes);
  cudaMalloc((void**)&d_out, bytes);
  cudaMemcpy(d_in, h_in, bytes, cudaMemcpyHostToDevice);
  square<<<n / 256, 256>>>(d_in, d_out, n);
  cudaMemcpy(h_out, d_out, bytes, cudaMemcpyDeviceToHost);  // Finding: uninitialised_copy
  for (int i = 0; i < n; i += 111) printf("%f\n", h_out[i]);
  cudaFree(d_in);
  cudaFree(d_out);
  free(h_in);
  free(h_out);
}
