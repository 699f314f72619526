// SPDX-License-Identifier: Apache-2.0
__global__ void scan(int* data, int n) {
  __shared__ int s[512];
  int t = threadIdx.x, offset = 1;
  s[2 * t] = data[2 * t];
  s[2 * t + 1] = data[2 * t + 1];
  for (int d = n >> 1; d > 0; d >>= 1) {
    __syncthreads();
    if (t < d) s[offset * (2 * t + 2) - 1] += s[offset * (2 * t + 1) - 1];
    offset *= 2;
  }
  if (t == 0) s[n - 1] = 0;
  for (int d = 1; d < n; d *= 2) {
    offset >>= 1;
    __syncthreads();
    if (t < d) {
      int a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1;
      int x = s[a];
      s[a] = s[b];
      s[b] += x;
    }
  }
  __syncthreads();
  data[2 * t] = s[2 * t];
  data[2 * t + 1] = s[2 * t + 1];
}

int main() {
  const int n = 512;
  int h[n], r[n], *d, sum = 0;
  for (int i = 0; i < n; i++) h[i] = i % 5 + 1;
  cudaMalloc(&d, sizeof(h));
  cudaMemcpy(d, h, sizeof(h), cudaMemcpyHostToDevice);
  scan<<<1, n / 2>>>(d, n);
  cudaMemcpy(r, d, sizeof(r), cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; sum += h[i++])
    if (r[i] != sum) return 1;
}
