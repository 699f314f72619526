// SPDX-License-Identifier: Apache-2.0
//
// Kernels whose lanes meet in warps of 32, or of 128 as on MUSA's mp_21, for the tests.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "musa/warps_of_128.cuh"

namespace cg = cooperative_groups;

constexpr unsigned kAll = 0xFFFFFFFFu;
constexpr int kLanes = 128;

// ---- For warps of both sizes, as CUDA's headers have them.
extern "C" __global__ void tiles(int* y) {
  const int t = threadIdx.x;
  const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  const auto eight = cg::tiled_partition<8>(tile);
  if (t / 32 == 2) return;  // Tiles need nothing of each other.
  y[t] = tile.shfl(t, 0) == t / 32 * 32 && tile.shfl_xor(t, 16) == (t ^ 16) &&
         tile.ballot(t % 32 < 5) == 31u && tile.all(1) && !tile.any(t % 32 == 32) &&
         tile.match_any(t / 16) == 0xFFFFu << (t / 16 % 2 * 16) &&
         eight.shfl(t, 1) == t / 8 * 8 + 1 && eight.ballot(t % 8 < 3) == 7u &&
         eight.any(t % 32 == 9) == (t % 32 / 8 == 1) && eight.all(t % 8 < 8) &&
         eight.match_any(t % 4) == 0x11u << t % 4;
  eight.sync();
  tile.sync();
}

extern "C" __global__ void one_tile_goes_on(int* y) {
  const int t = threadIdx.x;
  const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  if (t < 32) y[t] = tile.shfl_down(t, 1);
  __syncthreads();
}

extern "C" __global__ void coalesced(int* y) {
  const int t = threadIdx.x;
  if (t % 4 != 1) return;
  const cg::coalesced_group group = cg::coalesced_threads();
  y[t] = group.size() == 8 && group.thread_rank() == static_cast<unsigned>(t % 32 / 4) &&
         group.shfl(t, 0) == t / 32 * 32 + 1 && group.ballot(1) == 0xFFu;
}

extern "C" __global__ void some_lanes_left(int* y, int lanes) {
  const int t = threadIdx.x;
  if (static_cast<int>(t % 32) >= lanes) return;
  y[t] = __shfl_down_sync(kAll, t, 1) + __reduce_add_sync(kAll, 1);
}

// ---- For warps of 128: the functions of the header.
extern "C" __global__ void shuffles(int* y, int width) {
  const int t = threadIdx.x;
  y[t] = mcshfl_sync(kAll, t, 3, width);
  y[kLanes + t] = mcshfl_up_sync(kAll, t, 2, width);
  y[2 * kLanes + t] = mcshfl_down_sync(kAll, t, 2, width);
  y[3 * kLanes + t] = mcshfl_xor_sync(kAll, t, 1, width);
}

extern "C" __global__ void shuffles_without_width(int* y) {
  const int t = threadIdx.x;
  y[t] = mcshfl_sync(kAll, t, 0);
  y[2 * kLanes + t] = mcshfl_xor_sync(kAll, t, 64);
}

extern "C" __global__ void far_shuffles(int* y) {
  const int t = threadIdx.x;
  y[t] = mcshfl_up_sync(kAll, t, 128) == t && mcshfl_down_sync(kAll, t, 1000) == t &&
         mcshfl_xor_sync(kAll, t, -1) == t && mcshfl_down_sync(kAll, t, ~0u) == t &&
         mcshfl_sync(kAll, t, 130) == 2;
}

extern "C" __global__ void shuffles_of_types(int* y) {
  const int t = threadIdx.x, other = t ^ 100;
  const double d = mcshfl_xor_sync(kAll, 1.0 / (t + 1), 100);
  const long long l = mcshfl_xor_sync(kAll, -(1LL << 40) - t, 100);
  const float f = mcshfl_xor_sync(kAll, 0.5f * t, 100);
  const __half h = mcshfl_xor_sync(kAll, __float2half(t), 100);
  const __half2 hh = mcshfl_xor_sync(kAll, __floats2half2_rn(t, -t), 100);
  const __nv_bfloat16 b = mcshfl_xor_sync(kAll, __float2bfloat16(t), 100);
  const unsigned char c = t;
  y[t] = d == 1.0 / (other + 1) && l == -(1LL << 40) - other && f == 0.5f * other &&
         __half2float(h) == other && __high2float(hh) == -other && __bfloat162float(b) == other &&
         mcshfl_xor_sync(kAll, c, 100) == other &&
         mcshfl_xor_sync(kAll, t > 64, 100) == (other > 64);
}

extern "C" __global__ void sizes(int* y) {
  y[0] = warpSize;
  for (int lanes = warpSize; lanes > 1; lanes /= 2) ++y[1];
}

extern "C" __global__ void long_votes(int* y) {
  const int t = threadIdx.x;
  y[t] = mcany_sync(kAll, t == 127) == 1 && mcany_sync(kAll, t == 128) == 0 &&
         mcall_sync(kAll, t < 128) == 1 && mcall_sync(kAll, t < 127) == 0 &&
         mcuni_sync(kAll, 1) == 1 && mcuni_sync(kAll, t == 100) == 0;
}

extern "C" __global__ void long_masks(int* y) {
  const int t = threadIdx.x;
  int all = 0;
  y[t] = mcballot_sync(kAll, t % 2) == 0xAAAAAAAAu && mcballot_sync(kAll, t >= 32) == 0 &&
         mcmatch_any_sync(kAll, t / 48) == (t < 48 ? kAll : 0) && mcactivemask() == kAll &&
         mcmatch_any_sync(kAll, t / 48 * 0.5) == (t < 48 ? kAll : 0) &&
         mcmatch_all_sync(kAll, 5, &all) == kAll && all == 1 &&
         mcmatch_all_sync(kAll, t == 99, &all) == 0 && all == 0;
}

extern "C" __global__ void long_sums(int* y) {
  const int t = threadIdx.x;
  y[0] = mcreduce_add_sync(kAll, t);
  y[1] = mcreduce_min_sync(kAll, -t);
  y[2] = mcreduce_max_sync(kAll, t);
  y[3] = static_cast<int>(mcreduce_max_sync(kAll, static_cast<unsigned>(-t)));
  y[4] = static_cast<int>(mcreduce_or_sync(kAll, static_cast<unsigned>(t)));
}

extern "C" __global__ void first_lanes_alone(int* y) {
  const int t = threadIdx.x;
  if (t < 16) y[t] = mcshfl_down_sync(0xFFFFu, t, 1, 16);
  __syncthreads();
}

extern "C" __global__ void masks_of_halves(int* y) {
  const int t = threadIdx.x;
  y[t] = mcshfl_xor_sync(t % 32 < 16 ? 0x0000FFFFu : 0xFFFF0000u, t, 1);
}

extern "C" __global__ void a_quarter_goes_on(int* y) {
  const int t = threadIdx.x;
  if (t < 32) y[t] = mcshfl_down_sync(kAll, t, 1);
  __syncthreads();
}

extern "C" __global__ void a_quarter_stays(int* y) {
  const int t = threadIdx.x;
  if (t >= 32) return;
  y[t] = mcshfl_xor_sync(kAll, t, 1);
}

extern "C" __global__ void pass_on_by_shared_memory(int* y, int distance) {
  __shared__ int s[2 * kLanes];
  const int t = threadIdx.x;
  s[t] = t;
  mcsyncwarp();
  y[t] = s[t ^ distance];
}

extern "C" __global__ void a_short_warp(int* y) { y[threadIdx.x] = mcreduce_add_sync(kAll, 1); }
