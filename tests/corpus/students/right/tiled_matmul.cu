// SPDX-License-Identifier: Apache-2.0
#define T 16

__global__ void matmul(const float* a, const float* b, float* c, int m, int k, int n) {
  __shared__ float s[T][T], u[T][T];
  int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
  float acc = 0;
  for (int p = 0; p < (k + T - 1) / T; p++) {
    int ka = p * T + threadIdx.x, kb = p * T + threadIdx.y;
    s[threadIdx.y][threadIdx.x] = row < m && ka < k ? a[row * k + ka] : 0.0f;
    u[threadIdx.y][threadIdx.x] = kb < k && col < n ? b[kb * n + col] : 0.0f;
    __syncthreads();
    for (int q = 0; q < T; q++) acc += s[threadIdx.y][q] * u[q][threadIdx.x];
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = acc;
}

int main() {
  const int m = 37, k = 50, n = 41;
  static float a[m * k], b[k * n], c[m * n];
  for (int i = 0; i < m * k; i++) a[i] = i % 5;
  for (int i = 0; i < k * n; i++) b[i] = i % 3;
  float *d_a, *d_b, *d_c;
  cudaMalloc(&d_a, sizeof(a));
  cudaMalloc(&d_b, sizeof(b));
  cudaMalloc(&d_c, sizeof(c));
  cudaMemcpy(d_a, a, sizeof(a), cudaMemcpyHostToDevice);
  cudaMemcpy(d_b, b, sizeof(b), cudaMemcpyHostToDevice);
  matmul<<<dim3((n + T - 1) / T, (m + T - 1) / T), dim3(T, T)>>>(d_a, d_b, d_c, m, k, n);
  cudaMemcpy(c, d_c, sizeof(c), cudaMemcpyDeviceToHost);
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      float sum = 0;
      for (int p = 0; p < k; p++) sum += a[i * k + p] * b[p * n + j];
      if (c[i * n + j] != sum) return 1;
    }
}
