// SPDX-License-Identifier: Apache-2.0
#define R 3
#define B 128

__global__ void stencil(const int* in, int* out, int n) {
  __shared__ int t[B + 2 * R];
  int g = blockIdx.x * blockDim.x + threadIdx.x, l = threadIdx.x + R;
  t[l] = g < n ? in[g] : 0;
  if (threadIdx.x < R) {
    t[l - R] = g >= R ? in[g - R] : 0;
    t[l + B] = g + B < n ? in[g + B] : 0;
  }
  __syncthreads();
  if (g >= n) return;
  int sum = 0;
  for (int o = -R; o <= R; o++) sum += t[l + o];
  out[g] = sum;
}

int main() {
  const int n = 1000;
  int h[n], r[n], *in, *out;
  for (int i = 0; i < n; i++) h[i] = i;
  cudaMalloc(&in, sizeof(h));
  cudaMalloc(&out, sizeof(h));
  cudaMemcpy(in, h, sizeof(h), cudaMemcpyHostToDevice);
  stencil<<<(n + B - 1) / B, B>>>(in, out, n);
  cudaMemcpy(r, out, sizeof(r), cudaMemcpyDeviceToHost);
  for (int i = R; i < n - R; i++)
    if (r[i] != 7 * i) return 1;
}
