// SPDX-License-Identifier: Apache-2.0
// Fault: the tile has room for its neighbours, and no thread loads them.
// Expected: uninitialised_shared where "Finding:" is.
#include <cstdio>

#define RADIUS 2
#define BLOCK 64

__global__ void stencil(const int* in, int* out) {
  __shared__ int tile[BLOCK + 2 * RADIUS];
  int g = blockIdx.x * blockDim.x + threadIdx.x;
  int l = threadIdx.x + RADIUS;
  tile[l] = in[g];
  __syncthreads();
  int sum = 0;
  for (int o = -RADIUS; o <= RADIUS; o++) sum += tile[l + o];  // Finding: uninitialised_shared
  out[g] = sum;
}

int main() {
  const int n = 256;
  int h[n], *in, *out;
  for (int i = 0; i < n; i++) h[i] = 1;
  cudaMalloc(&in, sizeof(h));
  cudaMalloc(&out, sizeof(h));
  cudaMemcpy(in, h, sizeof(h), cudaMemcpyHostToDevice);
  stencil<<<n / BLOCK, BLOCK>>>(in, out);
  cudaMemcpy(h, out, sizeof(h), cudaMemcpyDeviceToHost);
  printf("%d %d\n", h[10], h[64]);
}
