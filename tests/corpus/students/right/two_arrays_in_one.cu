// SPDX-License-Identifier: Apache-2.0
// Dynamic shared memory that holds doubles and, behind them, integers.
__global__ void best(const double* x, int n, double* value, int* place) {
  extern __shared__ double values[];
  int* places = (int*)&values[blockDim.x];
  int t = threadIdx.x;
  values[t] = -1e300;
  places[t] = -1;
  for (int i = t; i < n; i += blockDim.x) {
    if (x[i] > values[t]) {
      values[t] = x[i];
      places[t] = i;
    }
  }
  __syncthreads();
  for (int d = blockDim.x / 2; d > 0; d /= 2) {
    if (t < d && values[t + d] > values[t]) {
      values[t] = values[t + d];
      places[t] = places[t + d];
    }
    __syncthreads();
  }
  if (t == 0) {
    *value = values[0];
    *place = places[0];
  }
}

int main() {
  const int n = 777, threads = 64;
  double h[n], *x, *value, v;
  int *place, p;
  for (int i = 0; i < n; i++) h[i] = -(i - 500.0) * (i - 500.0);
  cudaMalloc(&x, sizeof(h));
  cudaMalloc(&value, sizeof(v));
  cudaMalloc(&place, sizeof(p));
  cudaMemcpy(x, h, sizeof(h), cudaMemcpyHostToDevice);
  best<<<1, threads, threads * (sizeof(double) + sizeof(int))>>>(x, n, value, place);
  cudaMemcpy(&v, value, sizeof(v), cudaMemcpyDeviceToHost);
  cudaMemcpy(&p, place, sizeof(p), cudaMemcpyDeviceToHost);
  return p != 500 || v != 0;
}
