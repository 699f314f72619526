// SPDX-License-Identifier: Apache-2.0
// Fault: all threads add to one shared word without an atomic.
// Expected: shared_race where "Finding:" is.
#include <iostream>

__global__ void dot(const int* a, const int* b, int n, int* result) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    sum += a[i] * b[i];  // Finding: shared_race
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(result, sum);
}

int main() {
  const int n = 5000;
  int* h = new int[n];
  for (int i = 0; i < n; i++) h[i] = i % 3;
  int *a, *b, *r, result = 0;
  cudaMalloc(&a, n * sizeof(int));
  cudaMalloc(&b, n * sizeof(int));
  cudaMalloc(&r, sizeof(int));
  cudaMemcpy(a, h, n * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(b, h, n * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemset(r, 0, sizeof(int));
  dot<<<4, 128>>>(a, b, n, r);
  cudaMemcpy(&result, r, sizeof(int), cudaMemcpyDeviceToHost);
  std::cout << "dot = " << result << std::endl;
  delete[] h;
}
