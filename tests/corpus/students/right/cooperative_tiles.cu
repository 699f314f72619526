// SPDX-License-Identifier: Apache-2.0
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void sums_of_eight(const int* x, int* out) {
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<8>(block);
  int i = blockIdx.x * blockDim.x + block.thread_rank();
  int v = x[i];
  for (int d = tile.size() / 2; d > 0; d /= 2) v += tile.shfl_down(v, d);
  if (tile.thread_rank() == 0) out[i / 8] = v;
}

int main() {
  const int n = 512;
  int h[n], r[n / 8], *x, *out;
  for (int i = 0; i < n; i++) h[i] = i / 8;
  cudaMalloc(&x, sizeof(h));
  cudaMalloc(&out, sizeof(r));
  cudaMemcpy(x, h, sizeof(h), cudaMemcpyHostToDevice);
  sums_of_eight<<<4, 128>>>(x, out);
  cudaMemcpy(r, out, sizeof(r), cudaMemcpyDeviceToHost);
  for (int k = 0; k < n / 8; k++)
    if (r[k] != 8 * k) return 1;
}
