// SPDX-License-Identifier: Apache-2.0
#include <cfloat>

__device__ void atomic_max(float* address, float value) {
  int* bits = (int*)address;
  int old = *bits, assumed;
  while (value > __int_as_float(old)) {
    assumed = old;
    old = atomicCAS(bits, assumed, __float_as_int(value));
    if (old == assumed) break;
  }
}

__global__ void maximum(const float* x, int n, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomic_max(out, x[i]);
}

int main() {
  const int n = 3000;
  static float h[n];
  for (int i = 0; i < n; i++) h[i] = (i * 7919) % 3001 - 1500.0f;
  float *x, *out, best = -FLT_MAX, expected = -FLT_MAX;
  for (float one : h) expected = one > expected ? one : expected;
  cudaMalloc(&x, sizeof(h));
  cudaMalloc(&out, sizeof(float));
  cudaMemcpy(x, h, sizeof(h), cudaMemcpyHostToDevice);
  cudaMemcpy(out, &best, sizeof(float), cudaMemcpyHostToDevice);
  maximum<<<(n + 127) / 128, 128>>>(x, n, out);
  cudaMemcpy(&best, out, sizeof(float), cudaMemcpyDeviceToHost);
  return best != expected;
}
