// SPDX-License-Identifier: Apache-2.0
__inline__ __device__ int warp_sum(int v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);
  return v;
}

__global__ void block_sum(const int* x, int* total, int n) {
  __shared__ int part[32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int v = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += x[i];
  v = warp_sum(v);
  if (lane == 0) part[warp] = v;
  __syncthreads();
  v = threadIdx.x < blockDim.x / 32 ? part[lane] : 0;
  if (warp == 0) v = warp_sum(v);
  if (threadIdx.x == 0) atomicAdd(total, v);
}

int main() {
  const int n = 10007;
  static int h[n];
  int *x, *total, sum = 0, expected = 0;
  for (int i = 0; i < n; i++) expected += h[i] = i % 11;
  cudaMalloc(&x, sizeof(h));
  cudaMalloc(&total, sizeof(int));
  cudaMemset(total, 0, sizeof(int));
  cudaMemcpy(x, h, sizeof(h), cudaMemcpyHostToDevice);
  block_sum<<<7, 160>>>(x, total, n);
  cudaMemcpy(&sum, total, sizeof(int), cudaMemcpyDeviceToHost);
  return sum != expected;
}
