// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels.h"

#include <cuda_runtime.h>

namespace mc::device {
namespace {

constexpr unsigned kThreads = 256;
constexpr uint64_t kBlocksMax = 2048;

// The finaliser of SplitMix64 (Steele, Lea and Flood 2014), twice, with a secret before each.
__device__ uint64_t word_of(const Mask& mask, uint64_t index) {
  uint64_t z = mask.words[0] + index * 0x9e3779b97f4a7c15u;
  for (int round = 0; round < 2; ++round) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z = (z ^ (z >> 31)) + mask.words[1];
  }
  return z;
}

__global__ void masked_copy(unsigned char* target, const unsigned char* source, uint64_t bytes,
                            Mask mask, uint64_t first_word) {
  const bool is_aligned =
      ((reinterpret_cast<uint64_t>(target) | reinterpret_cast<uint64_t>(source)) & 7) == 0;
  const uint64_t step = uint64_t{gridDim.x} * blockDim.x;
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i * 8 < bytes; i += step) {
    const uint64_t word = word_of(mask, first_word + i);
    if (is_aligned && i * 8 + 8 <= bytes) {
      reinterpret_cast<uint64_t*>(target)[i] = reinterpret_cast<const uint64_t*>(source)[i] ^ word;
      continue;
    }
    for (unsigned k = 0; k < 8 && i * 8 + k < bytes; ++k) {
      target[i * 8 + k] = source[i * 8 + k] ^ static_cast<unsigned char>(word >> (8 * k));
    }
  }
}

__global__ void read_all(const uint4* source, uint64_t count, unsigned* sink) {
  unsigned sum = 0;
  const uint64_t step = uint64_t{gridDim.x} * blockDim.x;
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const uint4 value = __ldcg(source + i);
    sum ^= value.x ^ value.y ^ value.z ^ value.w;
  }
  if (sum == 0x9e3779b9u) *sink = sum;  // Keeps the compiler from removing the loads.
}

__global__ void store(volatile uint64_t* target, uint64_t value) {
  *target = value;
  __threadfence_system();
}

unsigned blocks_for(uint64_t threads) {
  const uint64_t blocks = (threads + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < kBlocksMax ? blocks : kBlocksMax);
}

CUresult launched() { return static_cast<CUresult>(cudaGetLastError()); }

}  // namespace

CUresult copy_masked(CUdeviceptr target, CUdeviceptr source, uint64_t bytes, const Mask& mask,
                     uint64_t first_word, CUstream stream) {
  if (bytes == 0) return CUDA_SUCCESS;
  masked_copy<<<blocks_for((bytes + 7) / 8), kThreads, 0, stream>>>(
      reinterpret_cast<unsigned char*>(target), reinterpret_cast<const unsigned char*>(source),
      bytes, mask, first_word);
  return launched();
}

CUresult store_word(CUdeviceptr target, uint64_t value, CUstream stream) {
  store<<<1, 1, 0, stream>>>(reinterpret_cast<volatile uint64_t*>(target), value);
  return launched();
}

CUresult read_through(CUdeviceptr source, uint64_t bytes, CUdeviceptr sink, CUstream stream) {
  read_all<<<kBlocksMax, kThreads, 0, stream>>>(reinterpret_cast<const uint4*>(source), bytes / 16,
                                                reinterpret_cast<unsigned*>(sink));
  return launched();
}

void begin_command(uint64_t) {}
void note_refused_copy(uint64_t) {}
void note_host_access(const HostAccess&) {}
void note_missing_library(const char*) {}

}  // namespace mc::device
