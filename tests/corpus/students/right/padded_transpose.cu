// SPDX-License-Identifier: Apache-2.0
#define TILE 32
#define ROWS 8

__global__ void transpose(const float* in, float* out, int width, int height) {
  __shared__ float tile[TILE][TILE + 1];
  int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  for (int j = 0; j < TILE; j += ROWS)
    if (x < width && y + j < height) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
  __syncthreads();
  x = blockIdx.y * TILE + threadIdx.x;
  y = blockIdx.x * TILE + threadIdx.y;
  for (int j = 0; j < TILE; j += ROWS)
    if (x < height && y + j < width) out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

int main() {
  const int w = 100, h = 75;
  static float a[w * h], b[w * h];
  for (int i = 0; i < w * h; i++) a[i] = i;
  float *in, *out;
  cudaMalloc(&in, sizeof(a));
  cudaMalloc(&out, sizeof(a));
  cudaMemcpy(in, a, sizeof(a), cudaMemcpyHostToDevice);
  transpose<<<dim3((w + 31) / 32, (h + 31) / 32), dim3(TILE, ROWS)>>>(in, out, w, h);
  cudaMemcpy(b, out, sizeof(b), cudaMemcpyDeviceToHost);
  for (int y = 0; y < h; y++)
    for (int x = 0; x < w; x++)
      if (b[x * h + y] != a[y * w + x]) return 1;
}
