// SPDX-License-Identifier: Apache-2.0
#include <vector>

struct Csr {
  int rows;
  int* first;
  int* column;
  float* value;
};

__global__ void multiply(Csr m, const float* x, float* y) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= m.rows) return;
  float sum = 0;
  for (int e = m.first[row] + lane; e < m.first[row + 1]; e += 32)
    sum += m.value[e] * x[m.column[e]];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffff, sum, d);
  if (lane == 0) y[row] = sum;
}

template <class T>
T* to_device(const std::vector<T>& v) {
  T* d;
  cudaMalloc(&d, v.size() * sizeof(T));
  cudaMemcpy(d, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice);
  return d;
}

int main() {
  const int n = 99;
  std::vector<int> first = {0}, column;
  std::vector<float> value, x(n, 2), y(n);
  for (int r = 0; r < n; r++) {
    for (int k = 0; k <= r; k++) {
      column.push_back(k);
      value.push_back(1);
    }
    first.push_back((int)column.size());
  }
  Csr m = {n, to_device(first), to_device(column), to_device(value)};
  float *d_x = to_device(x), *d_y;
  cudaMalloc(&d_y, n * sizeof(float));
  multiply<<<(n * 32 + 127) / 128, 128>>>(m, d_x, d_y);
  cudaMemcpy(y.data(), d_y, n * sizeof(float), cudaMemcpyDeviceToHost);
  for (int r = 0; r < n; r++)
    if (y[r] != 2 * (r + 1)) return 1;
}
