// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

__device__ unsigned next(unsigned& state) {
  state = state * 1664525u + 1013904223u;
  return state >> 8;
}

__global__ void throw_darts(unsigned long long* hits, int each) {
  unsigned state = blockIdx.x * blockDim.x + threadIdx.x + 12345;
  int inside = 0;
  for (int k = 0; k < each; k++) {
    float x = next(state) / 16777216.0f, y = next(state) / 16777216.0f;
    inside += x * x + y * y < 1;
  }
  atomicAdd(hits, (unsigned long long)inside);
}

int main() {
  unsigned long long *hits, h = 0;
  cudaMalloc(&hits, sizeof(h));
  cudaMemcpy(hits, &h, sizeof(h), cudaMemcpyHostToDevice);
  throw_darts<<<8, 64>>>(hits, 100);
  cudaMemcpy(&h, hits, sizeof(h), cudaMemcpyDeviceToHost);
  double pi = 4.0 * h / (8 * 64 * 100);
  printf("%f\n", pi);
  return pi < 3 || pi > 3.3;
}
