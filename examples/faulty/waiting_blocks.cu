// SPDX-License-Identifier: Apache-2.0
//
// Blocks take turns by a counter.  Fault: there is no fence after the value that a block passes on.
#include <cstdio>

__global__ void in_turn(int* values, int* turn) {
  if (threadIdx.x != 0) return;
  while (atomicAdd(turn, 0) != blockIdx.x) {
  }
  values[blockIdx.x + 1] = values[blockIdx.x] + 1;  // Finding: global_race
  atomicAdd(turn, 1);
}

int main() {
  const int blocks = 4;
  int *values, *turn, last = 0;
  cudaMalloc(&values, (blocks + 1) * sizeof(int));
  cudaMalloc(&turn, sizeof(int));
  cudaMemset(values, 0, (blocks + 1) * sizeof(int));
  cudaMemset(turn, 0, sizeof(int));
  in_turn<<<blocks, 32>>>(values, turn);
  cudaMemcpy(&last, values + blocks, sizeof last, cudaMemcpyDeviceToHost);
  std::printf("%d turns of %d\n", last, blocks);
}
