// SPDX-License-Identifier: Apache-2.0
__global__ void saxpy(int n, float a, const float* x, float* y) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    y[i] = a * x[i] + y[i];
}

int main() {
  const int n = 12345;
  static float h[n];
  float *x, *y;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  for (int i = 0; i < n; i++) h[i] = 1;
  cudaMemcpy(x, h, n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(y, h, n * sizeof(float), cudaMemcpyHostToDevice);
  saxpy<<<16, 128>>>(n, 2, x, y);
  saxpy<<<3, 64>>>(n, 2, x, y);
  cudaMemcpy(h, y, n * sizeof(float), cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; i++)
    if (h[i] != 5) return 1;
  cudaFree(x);
  cudaFree(y);
}
