// SPDX-License-Identifier: Apache-2.0
//
// A histogram of letters.  Fault: threads of all blocks add to the same counts without atomics.
#include <cstdio>

__global__ void count(const unsigned char* text, int n, int* counts) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) counts[text[i]] += 1;  // Finding: global_race
}

int main() {
  const int n = 4096;
  unsigned char host[n], *text;
  int *counts, as = 0;
  for (int i = 0; i < n; ++i) host[i] = 'a' + i % 4;
  cudaMalloc(&text, n);
  cudaMalloc(&counts, 256 * sizeof(int));
  cudaMemset(counts, 0, 256 * sizeof(int));
  cudaMemcpy(text, host, n, cudaMemcpyHostToDevice);
  count<<<n / 128, 128>>>(text, n, counts);
  cudaMemcpy(&as, counts + 'a', sizeof as, cudaMemcpyDeviceToHost);
  std::printf("%d times a, of 1024\n", as);
}
