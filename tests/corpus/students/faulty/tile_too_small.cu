// SPDX-License-Identifier: Apache-2.0
// Fault: the tile has 16 columns, the block 32.
// Expected: out_of_bounds_write where "Finding:" is.
#include <cstdio>

#define TILE 16

__global__ void scale(float* m, int width) {
  __shared__ float tile[TILE][TILE];
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = m[y * width + x];  // Finding: out_of_bounds_write
  __syncthreads();
  m[y * width + x] = tile[threadIdx.y][threadIdx.x] * 3.0f;
}

int main() {
  const int width = 64;
  float* m;
  cudaMalloc(&m, width * width * sizeof(float));
  cudaMemset(m, 0, width * width * sizeof(float));
  dim3 block(32, 16);
  scale<<<dim3(width / block.x, width / block.y), block>>>(m, width);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(m);
}
