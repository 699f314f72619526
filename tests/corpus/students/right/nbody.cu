// SPDX-License-Identifier: Apache-2.0
#include <cmath>

__global__ void forces(const float4* body, float3* force, int n) {
  extern __shared__ float4 tile[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 me = i < n ? body[i] : make_float4(0, 0, 0, 0);
  float3 f = {0, 0, 0};
  for (int first = 0; first < n; first += blockDim.x) {
    int j = first + threadIdx.x;
    tile[threadIdx.x] = j < n ? body[j] : make_float4(0, 0, 0, 0);
    __syncthreads();
    for (int k = 0; k < blockDim.x; k++) {
      float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
      float r = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
      float s = tile[k].w * r * r * r;
      f.x += s * dx;
      f.y += s * dy;
      f.z += s * dz;
    }
    __syncthreads();
  }
  if (i < n) force[i] = f;
}

int main() {
  const int n = 150;
  float4 h[n], *body;
  float3 f[n], *force;
  for (int i = 0; i < n; i++) h[i] = make_float4(std::sin(i), std::cos(i * 2.0f), i * 0.01f, 1);
  cudaMalloc(&body, sizeof(h));
  cudaMalloc(&force, sizeof(f));
  cudaMemcpy(body, h, sizeof(h), cudaMemcpyHostToDevice);
  forces<<<(n + 63) / 64, 64, 64 * sizeof(float4)>>>(body, force, n);
  cudaMemcpy(f, force, sizeof(f), cudaMemcpyDeviceToHost);
  double x = 0;
  for (auto& one : f) x += one.x;
  return std::fabs(x) > 0.1;
}
