// SPDX-License-Identifier: Apache-2.0
__global__ void mandelbrot(int* out, int w, int h, int limit) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  float cr = -2 + 3.0f * x / w, ci = -1 + 2.0f * y / h, zr = 0, zi = 0;
  int k = 0;
  for (; k < limit && zr * zr + zi * zi < 4; k++) {
    float t = zr * zr - zi * zi + cr;
    zi = 2 * zr * zi + ci;
    zr = t;
  }
  out[y * w + x] = k;
}

int main() {
  const int w = 70, h = 50;
  static int image[w * h];
  int* out;
  cudaMalloc(&out, sizeof(image));
  mandelbrot<<<dim3((w + 15) / 16, (h + 15) / 16), dim3(16, 16)>>>(out, w, h, 60);
  if (cudaGetLastError() != cudaSuccess) return 2;
  cudaMemcpy(image, out, sizeof(image), cudaMemcpyDeviceToHost);
  return image[25 * w + 40] != 60;
}
