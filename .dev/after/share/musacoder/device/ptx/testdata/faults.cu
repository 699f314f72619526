// SPDX-License-Identifier: Apache-2.0
//
// Kernels with one fault each, which the tests expect to be found at its line.

extern "C" __global__ void missing_barrier(float* y) {
  __shared__ float s[64];
  s[threadIdx.x] = threadIdx.x;
  y[threadIdx.x] = s[63 - threadIdx.x];  // Race.
}

extern "C" __global__ void write_after_read(float* y) {
  __shared__ float s[64];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  const float v = s[63 - threadIdx.x];
  s[threadIdx.x] = v + 1;  // Race.
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void missing_warp_barrier(float* y) {
  __shared__ volatile float s[32];
  s[threadIdx.x] = threadIdx.x;
  y[threadIdx.x] = s[31 - threadIdx.x];  // Race.
}

extern "C" __global__ void same_flag(int* y) {
  __shared__ int flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x % 3 == 0) flag = 1;  // No fault: all write the same.
  __syncthreads();
  y[threadIdx.x] = flag;
}

extern "C" __global__ void unwritten(float* y) {
  __shared__ float s[64];
  if (threadIdx.x < 32) s[threadIdx.x] = 1;
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];  // Unwritten.
}

extern "C" __global__ void beyond_global(float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) y[i] = i;  // Out of bounds.
}

extern "C" __global__ void beyond_shared(float* y, int k) {
  __shared__ float first[32];
  __shared__ float second[32];
  first[threadIdx.x] = 1;
  second[threadIdx.x] = 2;
  __syncthreads();
  y[threadIdx.x] = first[threadIdx.x + k] + second[threadIdx.x];  // Out of bounds.
}

extern "C" __global__ void misaligned(const float* x, float* y) {
  const float4 v = *reinterpret_cast<const float4*>(x + threadIdx.x);  // Misaligned.
  y[threadIdx.x] = v.x + v.w;
}

extern "C" __global__ void null_pointer(float* y) { y[threadIdx.x] = 1; }  // Out of bounds.

extern "C" __global__ void divergent_barrier(float* y) {
  __shared__ float s[64];
  s[threadIdx.x] = threadIdx.x;
  if (threadIdx.x < 32) {
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x + 32];
  } else {
    __syncthreads();
    y[threadIdx.x] = 2 * s[threadIdx.x - 32];
  }
}

extern "C" __global__ void global_race(float* y) { y[blockIdx.x % 4] = blockIdx.x; }  // Race.

extern "C" __global__ void race_in_block(float* y) {
  y[threadIdx.x] = threadIdx.x;
  y[64 + threadIdx.x] = y[63 - threadIdx.x];  // Race.
}

extern "C" __global__ void absent_lane(float* y) {
  float v = threadIdx.x;
  if (threadIdx.x < 16) v = __shfl_down_sync(0xFFFFu, v, 8);  // Absent lane.
  y[threadIdx.x] = v;
}

extern "C" __global__ void deadlock(float* y) {
  if (threadIdx.x < 32) {
    asm volatile("bar.sync 1, 64;");  // Deadlock.
    y[threadIdx.x] = 1;
  }
}

extern "C" __global__ void traps(const int* x) {
  if (x[threadIdx.x] != 0) __trap();
}

extern "C" __global__ void early_exit(float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  __shared__ float s[256];
  s[threadIdx.x] = i;
  __syncthreads();
  y[i] = s[threadIdx.x ^ 1];
}

extern "C" __global__ void beyond_local(const int* index, float* y) {
  float a[8];
  for (int k = 0; k < 8; ++k) a[k] = k * threadIdx.x;
  y[threadIdx.x] = a[index[threadIdx.x]];  // Out of bounds.
}

extern "C" __global__ void read_before_write(float* y, float* out) {
  if (blockIdx.x == 0) {
    out[threadIdx.x] = y[threadIdx.x];
  } else if (blockIdx.x == gridDim.x - 1) {
    y[threadIdx.x] = 1;  // Race.
  }
}

extern "C" __global__ void shift_in_place(float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float next = y[i + 1];
  y[i] = next + 1;  // Race.
}

extern "C" __global__ void last_block_without_fence(float* partial, int* arrived, float* sum) {
  partial[blockIdx.x] = blockIdx.x;
  if (atomicAdd(arrived, 1) != static_cast<int>(gridDim.x) - 1) return;
  float all = 0;
  for (unsigned k = 0; k < gridDim.x; ++k) all += partial[k];  // Race.
  *sum = all;
}
