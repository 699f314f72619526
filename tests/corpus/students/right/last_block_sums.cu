// SPDX-License-Identifier: Apache-2.0
__device__ unsigned int done = 0;

__global__ void sum(const int* x, int n, volatile int* part, int* out) {
  __shared__ int s[128];
  __shared__ bool is_last;
  int t = threadIdx.x, v = 0;
  for (int i = blockIdx.x * 128 + t; i < n; i += gridDim.x * 128) v += x[i];
  s[t] = v;
  __syncthreads();
  for (int d = 64; d > 0; d /= 2) {
    if (t < d) s[t] += s[t + d];
    __syncthreads();
  }
  if (t == 0) {
    part[blockIdx.x] = s[0];
    __threadfence();
    is_last = atomicInc(&done, gridDim.x) == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last && t == 0) {
    int all = 0;
    for (int b = 0; b < gridDim.x; b++) all += part[b];
    *out = all;
    done = 0;
  }
}

int main() {
  const int n = 8000, blocks = 9;
  static int h[n];
  int *x, *part, *out, result = 0, expected = 0;
  for (int i = 0; i < n; i++) expected += h[i] = i % 13;
  cudaMalloc(&x, sizeof(h));
  cudaMalloc(&part, blocks * sizeof(int));
  cudaMalloc(&out, sizeof(int));
  cudaMemcpy(x, h, sizeof(h), cudaMemcpyHostToDevice);
  for (int k = 0; k < 2; k++) sum<<<blocks, 128>>>(x, n, part, out);
  cudaMemcpy(&result, out, sizeof(int), cudaMemcpyDeviceToHost);
  return result != expected;
}
