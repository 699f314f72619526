// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

__global__ void step(int* x, int j, int k) {
  unsigned i = threadIdx.x + blockDim.x * blockIdx.x, other = i ^ j;
  if (other <= i) return;
  bool up = (i & k) == 0;
  int a = x[i], b = x[other];
  if ((a > b) == up) {
    x[i] = b;
    x[other] = a;
  }
}

int main() {
  const int n = 1024;
  int h[n], *x;
  srand(5);
  for (int& one : h) one = rand();
  cudaMalloc(&x, sizeof(h));
  cudaMemcpy(x, h, sizeof(h), cudaMemcpyHostToDevice);
  for (int k = 2; k <= n; k *= 2)
    for (int j = k / 2; j > 0; j /= 2) step<<<n / 128, 128>>>(x, j, k);
  cudaMemcpy(h, x, sizeof(h), cudaMemcpyDeviceToHost);
  for (int i = 1; i < n; i++)
    if (h[i - 1] > h[i]) return 1;
}
