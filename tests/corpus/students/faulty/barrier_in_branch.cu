// SPDX-License-Identifier: Apache-2.0
// Fault: only one half of the block reaches the first barrier, the other half meets it at another.
// Expected: divergent_barrier where "Finding:" is.
#include <cstdio>

__global__ void stages(float* out) {
  __shared__ float buf[64];
  int t = threadIdx.x;
  if (t < 32) {
    buf[t] = t * 0.5f;
    __syncthreads();  // Finding: divergent_barrier
    out[t] = buf[31 - t];
  } else {
    buf[t] = t * 2.0f;
    __syncthreads();
    out[t] = buf[95 - t] + 1;
  }
}

int main() {
  float *out, h[64];
  cudaMalloc((void**)&out, 64 * sizeof(float));
  stages<<<1, 64>>>(out);
  cudaDeviceSynchronize();
  cudaMemcpy(h, out, sizeof(h), cudaMemcpyDeviceToHost);
  printf("%g %g\n", h[0], h[63]);
}
