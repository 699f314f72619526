// SPDX-License-Identifier: Apache-2.0
//
// Kernels that read global memory which nothing wrote: of 64 rows in `x` the first 60 elements of
// each are written, and 4 are padding; `y` and `words` are new. Lines with a mark are the reads
// from which results follow.
#define KERNEL(name) \
  extern "C" __global__ void name(const float* x, float* y, int* words, float* result)

constexpr int kColumns = 60, kPitch = 64;

KERNEL(ok_copies_padding) {
  y[blockIdx.x * kPitch + threadIdx.x] = x[blockIdx.x * kPitch + threadIdx.x];
  if (threadIdx.x < kColumns) result[blockIdx.x * kPitch + threadIdx.x] = 1;
}

KERNEL(ok_copies_padding_in_vectors) {
  const int row = blockIdx.x * kPitch / 4;
  if (threadIdx.x >= 16) return;
  reinterpret_cast<float4*>(y)[row + threadIdx.x] =
      reinterpret_cast<const float4*>(x)[row + threadIdx.x];
  if (threadIdx.x < 15) result[blockIdx.x] = 1;
}

KERNEL(ok_masks_after_the_load) {
  const float value = x[blockIdx.x * kPitch + threadIdx.x];
  result[blockIdx.x * kPitch + threadIdx.x] = threadIdx.x < kColumns ? value : 0;
}

KERNEL(ok_masks_by_a_branch) {
  float sum = 0;
  for (int k = 0; k < kPitch; ++k) {
    const float value = *reinterpret_cast<const volatile float*>(x + blockIdx.x * kPitch + k);
    if (k < kColumns && value > 0) sum += value;
  }
  if (threadIdx.x == 0) result[blockIdx.x] = sum;
}

KERNEL(ok_sums_parts_of_vectors) {
  const float4* row = reinterpret_cast<const float4*>(x + blockIdx.x * kPitch);
  float sum = 0;
  for (int k = 0; k < 16; ++k) {
    const volatile float4* at = reinterpret_cast<const volatile float4*>(row + k);
    const float part[] = {at->x, at->y, at->z, at->w};
    for (int i = 0; i < 4; ++i) sum += 4 * k + i < kColumns ? part[i] : 0;
  }
  if (threadIdx.x == 0) result[blockIdx.x] = sum;
}

KERNEL(ok_stages_padding_in_shared) {
  __shared__ float row[kPitch];
  row[threadIdx.x] = x[blockIdx.x * kPitch + threadIdx.x];
  __syncthreads();
  if (threadIdx.x < kColumns) result[blockIdx.x * kPitch + threadIdx.x] = row[59 - threadIdx.x];
}

KERNEL(ok_writes_before_it_reads) {
  float* row = y + blockIdx.x * kPitch;
  row[threadIdx.x] = x[threadIdx.x % kColumns];
  __syncthreads();
  result[blockIdx.x * kPitch + threadIdx.x] = row[63 - threadIdx.x];
}

KERNEL(ok_exchanges_without_a_look) {
  if (threadIdx.x != 0) return;
  atomicExch(words + blockIdx.x, 0);
  result[blockIdx.x] = 1;
}

KERNEL(ok_clears_then_counts) {
  if (threadIdx.x == 0) words[blockIdx.x] = 0;
  __syncthreads();
  atomicAdd(words + blockIdx.x, 1);
  __syncthreads();
  if (threadIdx.x == 0) result[blockIdx.x] = words[blockIdx.x];
}

KERNEL(ok_overwrites_what_it_loaded) {
  volatile float* row = y + blockIdx.x * kPitch;
  const float old = row[threadIdx.x];
  row[threadIdx.x] = 2;
  if (old > 3 && threadIdx.x > 64) result[0] = 3;
  result[blockIdx.x * kPitch + threadIdx.x] = row[threadIdx.x];
}

KERNEL(ok_prefetches_the_next_row) {
  const volatile float* row = x + blockIdx.x * kPitch;
  float next = row[0], sum = 0;
  for (int k = 0; k < kColumns; ++k) {
    const float value = next;
    next = row[k + 1];
    sum += value;
  }
  if (threadIdx.x == 0) result[blockIdx.x] = sum;
}

KERNEL(ok_updates_padding_in_place) {
  float* row = const_cast<float*>(x) + blockIdx.x * kPitch;
  row[threadIdx.x] = row[threadIdx.x] * 2;
  if (threadIdx.x < kColumns) result[blockIdx.x * kPitch + threadIdx.x] = row[threadIdx.x];
}

KERNEL(ok_adds_a_selected_zero) {
  const float value = y[blockIdx.x * kPitch + threadIdx.x];
  const float beta = x[0] * 0;
  result[blockIdx.x * kPitch + threadIdx.x] = 5 + (beta != 0 ? beta * value : 0);
}

KERNEL(bad_sums_padding) {
  float sum = 0;
  for (int k = 0; k < kPitch; ++k) {
    sum += x[blockIdx.x * kPitch + k];  // unwritten_global
  }
  if (threadIdx.x == 0) result[blockIdx.x] = sum;
}

KERNEL(bad_adds_to_new_memory) {
  float* one = y + blockIdx.x * kPitch + threadIdx.x;
  *one += 1;  // unwritten_global
  result[blockIdx.x * kPitch + threadIdx.x] = *one;
}

KERNEL(bad_multiplies_by_zero) {
  const float value = y[blockIdx.x * kPitch + threadIdx.x];  // unwritten_global
  result[blockIdx.x * kPitch + threadIdx.x] = 5 + x[0] * 0 * value;
}

KERNEL(bad_counts_from_nothing) {
  if (threadIdx.x != 0) return;
  const int ticket = atomicAdd(words, 1);  // unwritten_global
  if (ticket == static_cast<int>(gridDim.x) - 1) result[0] = 1;
}

KERNEL(bad_branches) {
  result[blockIdx.x * kPitch + threadIdx.x] = 1;
  if (words[blockIdx.x] == 0) {  // unwritten_global
    result[blockIdx.x * kPitch + threadIdx.x] = 2;
  }
}

KERNEL(bad_index) {
  const int at = words[threadIdx.x] & 63;  // unwritten_global
  result[blockIdx.x * kPitch + threadIdx.x] = at < kColumns ? x[at] : 0;
}

KERNEL(bad_wild_index) {
  result[blockIdx.x * kPitch + threadIdx.x] = x[words[threadIdx.x]];  // unwritten_global
}

KERNEL(bad_swaps_with_padding) {
  if (threadIdx.x == 0) result[blockIdx.x] = x[blockIdx.x * kPitch];
  if (threadIdx.x != 1) return;
  float* row = const_cast<float*>(x) + blockIdx.x * kPitch;
  const float last = row[kColumns];  // unwritten_global
  result[blockIdx.x + gridDim.x] = last;
}
