// SPDX-License-Identifier: Apache-2.0
#include <utility>

__global__ void evolve(const unsigned char* now, unsigned char* next, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  int count = 0;
  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++)
      if (dx != 0 || dy != 0) count += now[(y + dy + h) % h * w + (x + dx + w) % w];
  next[y * w + x] = count == 3 || (count == 2 && now[y * w + x]);
}

int main() {
  const int w = 40, h = 25;
  unsigned char field[w * h] = {}, *a, *b;
  field[1] = field[w + 2] = field[2 * w] = field[2 * w + 1] = field[2 * w + 2] = 1;
  cudaMalloc(&a, w * h);
  cudaMalloc(&b, w * h);
  cudaMemcpy(a, field, w * h, cudaMemcpyHostToDevice);
  for (int k = 0; k < 12; k++) {
    evolve<<<dim3((w + 15) / 16, (h + 7) / 8), dim3(16, 8)>>>(a, b, w, h);
    std::swap(a, b);
  }
  cudaMemcpy(field, a, w * h, cudaMemcpyDeviceToHost);
  int alive = 0;
  for (int one : field) alive += one;
  return alive != 5;
}
