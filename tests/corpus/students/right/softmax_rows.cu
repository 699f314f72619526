// SPDX-License-Identifier: Apache-2.0
#include <cmath>

__global__ void softmax(const float* in, float* out, int cols) {
  __shared__ float s[128];
  const float* row = in + blockIdx.x * cols;
  int t = threadIdx.x;
  float best = -INFINITY, sum = 0;
  for (int c = t; c < cols; c += 128) best = fmaxf(best, row[c]);
  s[t] = best;
  __syncthreads();
  for (int d = 64; d > 0; d /= 2) {
    if (t < d) s[t] = fmaxf(s[t], s[t + d]);
    __syncthreads();
  }
  best = s[0];
  __syncthreads();
  for (int c = t; c < cols; c += 128) sum += expf(row[c] - best);
  s[t] = sum;
  __syncthreads();
  for (int d = 64; d > 0; d /= 2) {
    if (t < d) s[t] += s[t + d];
    __syncthreads();
  }
  for (int c = t; c < cols; c += 128) out[blockIdx.x * cols + c] = expf(row[c] - best) / s[0];
}

int main() {
  const int rows = 5, cols = 300;
  static float h[rows * cols];
  for (int i = 0; i < rows * cols; i++) h[i] = i % 17 * 0.3f;
  float *in, *out;
  cudaMalloc(&in, sizeof(h));
  cudaMalloc(&out, sizeof(h));
  cudaMemcpy(in, h, sizeof(h), cudaMemcpyHostToDevice);
  softmax<<<rows, 128>>>(in, out, cols);
  cudaMemcpy(h, out, sizeof(h), cudaMemcpyDeviceToHost);
  float sum = 0;
  for (int c = 0; c < cols; c++) sum += h[c];
  return std::fabs(sum - 1) > 1e-4f;
}
