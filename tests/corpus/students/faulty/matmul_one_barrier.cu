// SPDX-License-Identifier: Apache-2.0
// Fault: faster warps load the next tile while others still compute with this one.
// Expected: shared_race where "Finding:" is.
#include <cstdio>
#include <cstdlib>

#define T 16

__global__ void matmul(const float* A, const float* B, float* C, int n) {
  __shared__ float As[T][T], Bs[T][T];
  int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
  float acc = 0;
  for (int m = 0; m < n / T; m++) {
    As[threadIdx.y][threadIdx.x] = A[row * n + m * T + threadIdx.x];
    Bs[threadIdx.y][threadIdx.x] = B[(m * T + threadIdx.y) * n + col];  // Finding: shared_race
    __syncthreads();
    for (int k = 0; k < T; k++) acc += As[threadIdx.y][k] * Bs[k][threadIdx.x];
  }
  C[row * n + col] = acc;
}

int main() {
  const int n = 64;
  size_t bytes = n * n * sizeof(float);
  float* h = (float*)malloc(bytes);
  for (int i = 0; i < n * n; i++) h[i] = (i % 7) * 0.25f;
  float *A, *B, *C;
  cudaMalloc(&A, bytes);
  cudaMalloc(&B, bytes);
  cudaMalloc(&C, bytes);
  cudaMemcpy(A, h, bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(B, h, bytes, cudaMemcpyHostToDevice);
  matmul<<<dim3(n / T, n / T), dim3(T, T)>>>(A, B, C, n);
  cudaMemcpy(h, C, bytes, cudaMemcpyDeviceToHost);
  printf("C[0] = %f\n", h[0]);
  free(h);
}
