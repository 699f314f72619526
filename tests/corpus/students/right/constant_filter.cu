// SPDX-License-Identifier: Apache-2.0
#define WIDTH 9

__constant__ float filter[WIDTH];

__global__ void convolve(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  for (int k = 0; k < WIDTH; k++) {
    int at = i + k - WIDTH / 2;
    if (at >= 0 && at < n) sum += in[at] * filter[k];
  }
  out[i] = sum;
}

int main() {
  const int n = 500;
  float h[n], f[WIDTH], *in, *out;
  for (float& one : h) one = 1;
  for (float& one : f) one = 0.5f;
  cudaMalloc(&in, sizeof(h));
  cudaMalloc(&out, sizeof(h));
  cudaMemcpy(in, h, sizeof(h), cudaMemcpyHostToDevice);
  cudaMemcpyToSymbol(filter, f, sizeof(f));
  convolve<<<(n + 99) / 100, 100>>>(in, out, n);
  cudaMemcpy(h, out, sizeof(h), cudaMemcpyDeviceToHost);
  return h[250] != 4.5f || h[0] != 2.5f;
}
