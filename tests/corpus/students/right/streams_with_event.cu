// SPDX-License-Identifier: Apache-2.0
__global__ void fill(int* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = i;
}

__global__ void twice(const int* x, int* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}

int main() {
  const int n = 2000;
  int *x, *y, h[n];
  cudaMalloc(&x, sizeof(h));
  cudaMalloc(&y, sizeof(h));
  cudaStream_t a, b;
  cudaEvent_t filled;
  cudaStreamCreate(&a);
  cudaStreamCreate(&b);
  cudaEventCreateWithFlags(&filled, cudaEventDisableTiming);
  fill<<<(n + 127) / 128, 128, 0, a>>>(x, n);
  cudaEventRecord(filled, a);
  cudaStreamWaitEvent(b, filled, 0);
  twice<<<(n + 127) / 128, 128, 0, b>>>(x, y, n);
  cudaMemcpyAsync(h, y, sizeof(h), cudaMemcpyDeviceToHost, b);
  cudaStreamSynchronize(b);
  for (int i = 0; i < n; i++)
    if (h[i] != 2 * i) return 1;
  cudaEventDestroy(filled);
  cudaStreamDestroy(a);
  cudaStreamDestroy(b);
}
