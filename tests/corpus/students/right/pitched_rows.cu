// SPDX-License-Identifier: Apache-2.0
__global__ void brighten(unsigned char* image, size_t pitch, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h) image[y * pitch + x] += 10;
}

int main() {
  const int w = 77, h = 33;
  unsigned char a[h][w], *image;
  size_t pitch;
  for (auto& row : a)
    for (auto& one : row) one = 5;
  cudaMallocPitch(&image, &pitch, w, h);
  cudaMemcpy2D(image, pitch, a, w, w, h, cudaMemcpyHostToDevice);
  brighten<<<dim3((w + 31) / 32, (h + 7) / 8), dim3(32, 8)>>>(image, pitch, w, h);
  cudaMemcpy2D(a, w, image, pitch, w, h, cudaMemcpyDeviceToHost);
  for (auto& row : a)
    for (auto& one : row)
      if (one != 15) return 1;
  cudaFree(image);
}
