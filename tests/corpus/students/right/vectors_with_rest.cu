// SPDX-License-Identifier: Apache-2.0
__global__ void scale(float* x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4* quads = reinterpret_cast<float4*>(x);
  if (i < n / 4) {
    float4 v = quads[i];
    quads[i] = make_float4(a * v.x, a * v.y, a * v.z, a * v.w);
  }
  if (i < n % 4) x[n / 4 * 4 + i] *= a;
}

int main() {
  const int n = 1003;
  float h[n], *x;
  for (int i = 0; i < n; i++) h[i] = i;
  cudaMalloc(&x, sizeof(h));
  cudaMemcpy(x, h, sizeof(h), cudaMemcpyHostToDevice);
  scale<<<2, 128>>>(x, 2, n);
  cudaMemcpy(h, x, sizeof(h), cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; i++)
    if (h[i] != 2 * i) return 1;
}
