// SPDX-License-Identifier: Apache-2.0
__global__ void histogram(const unsigned char* x, int n, unsigned* out) {
  __shared__ unsigned bins[256];
  for (int b = threadIdx.x; b < 256; b += blockDim.x) bins[b] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    atomicAdd(&bins[x[i]], 1);
  __syncthreads();
  for (int b = threadIdx.x; b < 256; b += blockDim.x) atomicAdd(&out[b], bins[b]);
}

int main() {
  const int n = 20000;
  static unsigned char h[n];
  for (int i = 0; i < n; i++) h[i] = i * i % 251;
  unsigned char* x;
  unsigned *out, r[256], total = 0;
  cudaMalloc(&x, n);
  cudaMalloc(&out, sizeof(r));
  cudaMemset(out, 0, sizeof(r));
  cudaMemcpy(x, h, n, cudaMemcpyHostToDevice);
  histogram<<<6, 96>>>(x, n, out);
  cudaMemcpy(r, out, sizeof(r), cudaMemcpyDeviceToHost);
  for (unsigned one : r) total += one;
  return total != n;
}
