// SPDX-License-Identifier: Apache-2.0
// The scan of Hillis and Steele with two rows that change places.
__global__ void scan(const int* in, int* out, int n) {
  extern __shared__ int s[];
  int t = threadIdx.x, now = 0;
  s[t] = in[t];
  for (int d = 1; d < n; d *= 2) {
    __syncthreads();
    int* from = s + now * n;
    int* to = s + (1 - now) * n;
    to[t] = from[t] + (t >= d ? from[t - d] : 0);
    now = 1 - now;
  }
  out[t] = s[now * n + t];
}

int main() {
  const int n = 256;
  int h[n], r[n], *in, *out, sum = 0;
  for (int i = 0; i < n; i++) h[i] = i % 9;
  cudaMalloc(&in, sizeof(h));
  cudaMalloc(&out, sizeof(h));
  cudaMemcpy(in, h, sizeof(h), cudaMemcpyHostToDevice);
  scan<<<1, n, 2 * n * sizeof(int)>>>(in, out, n);
  cudaMemcpy(r, out, sizeof(r), cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; i++)
    if (r[i] != (sum += h[i])) return 1;
}
