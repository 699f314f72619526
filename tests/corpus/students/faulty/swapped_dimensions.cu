// SPDX-License-Identifier: Apache-2.0
// Fault: rows and columns of the grid are swapped, and the check asks for the wrong one.
// Expected: out_of_bounds_read where "Finding:" is.
#include <cstdio>

__global__ void invert(const unsigned char* in, unsigned char* out, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < height && y < width)
    out[y * width + x] = 255 - in[y * width + x];  // Finding: out_of_bounds_read
}

int main() {
  int width = 200, height = 100;
  unsigned char *in, *out;
  cudaMalloc(&in, width * height);
  cudaMalloc(&out, width * height);
  cudaMemset(in, 100, width * height);
  dim3 block(16, 16);
  dim3 grid((height + 15) / 16, (width + 15) / 16);
  invert<<<grid, block>>>(in, out, width, height);
  unsigned char first;
  cudaMemcpy(&first, out, 1, cudaMemcpyDeviceToHost);
  printf("%d\n", first);
}
