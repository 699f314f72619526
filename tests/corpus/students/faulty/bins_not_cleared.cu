// SPDX-License-Identifier: Apache-2.0
// Fault: the bins in shared memory are counted up, and no thread set them to zero.
// Expected: uninitialised_shared where "Finding:" is.
#include <cstdio>
#include <vector>

__global__ void histogram(const unsigned char* data, int n, unsigned int* out) {
  __shared__ unsigned int bins[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[data[i]], 1u);  // Finding: uninitialised_shared
  __syncthreads();
  atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}

int main() {
  const int n = 10000;
  std::vector<unsigned char> data(n);
  for (int i = 0; i < n; ++i) data[i] = (i * 7) % 256;
  unsigned char* d;
  unsigned int *out, h[256];
  cudaMalloc(&d, n);
  cudaMalloc(&out, 256 * sizeof(unsigned int));
  cudaMemset(out, 0, 256 * sizeof(unsigned int));
  cudaMemcpy(d, data.data(), n, cudaMemcpyHostToDevice);
  histogram<<<(n + 255) / 256, 256>>>(d, n, out);
  cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost);
  unsigned int total = 0;
  for (unsigned int one : h) total += one;
  printf("%u of %d\n", total, n);
}
