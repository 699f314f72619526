// SPDX-License-Identifier: Apache-2.0
// The host copies the whole output and looks at the part that was written.
#include <cstdio>

__global__ void keep_even(const int* x, int n, int* out, int* count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool keeps = i < n && x[i] % 2 == 0;
  unsigned mask = __ballot_sync(0xffffffff, keeps);
  int lane = threadIdx.x % 32, base = 0;
  if (lane == 0) base = atomicAdd(count, __popc(mask));
  base = __shfl_sync(0xffffffff, base, 0);
  if (keeps) out[base + __popc(mask & ((1u << lane) - 1))] = x[i];
}

int main() {
  const int n = 1000;
  int h[n], *x, *out, *count, kept = 0;
  for (int i = 0; i < n; i++) h[i] = i * 3;
  cudaMalloc(&x, sizeof(h));
  cudaMalloc(&out, sizeof(h));
  cudaMalloc(&count, sizeof(int));
  cudaMemcpy(x, h, sizeof(h), cudaMemcpyHostToDevice);
  cudaMemset(count, 0, sizeof(int));
  keep_even<<<(n + 127) / 128, 128>>>(x, n, out, count);
  cudaMemcpy(&kept, count, sizeof(int), cudaMemcpyDeviceToHost);
  cudaMemcpy(h, out, sizeof(h), cudaMemcpyDeviceToHost);
  for (int i = 0; i < kept; i++)
    if (h[i] % 2 != 0) return 1;
  printf("%d kept\n", kept);
  return kept != n / 2;
}
