// SPDX-License-Identifier: Apache-2.0
// Cooperative groups, on kernels that are launched as the rewriter would.
#include <gtest/gtest.h>

#include <numeric>

#include "cooperative_groups.h"
#include "cooperative_groups/memcpy_async.h"
#include "cooperative_groups/reduce.h"
#include "cooperative_groups/scan.h"
#include "kernel_test.h"

namespace cg = cooperative_groups;

namespace {

using mc_emu_test::run;
using mc_emu_test::Vector;

Vector<float> counted(int count) {
  Vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

__global__ void block_coordinates(unsigned* out) {
  cg::thread_block block = cg::this_thread_block();
  const unsigned rank = block.thread_rank();
  unsigned* mine = out + 6 * (cg::this_grid().block_rank() * block.size() + rank);
  mine[0] = rank;
  mine[1] = block.group_index().x;
  mine[2] = block.thread_index().y;
  mine[3] = block.dim_threads().z;
  mine[4] = block.num_threads();
  mine[5] = static_cast<unsigned>(cg::this_grid().thread_rank());
}

TEST(CooperativeGroups, BlockAndGridKnowTheirCoordinates) {
  Vector<unsigned> out(6 * 48, 99);
  run(dim3(2), dim3(4, 3, 2), block_coordinates, out.data());
  for (unsigned block = 0; block < 2; ++block) {
    for (unsigned rank = 0; rank < 24; ++rank) {
      const unsigned* mine = &out[6 * (block * 24 + rank)];
      EXPECT_THAT(Vector<unsigned>(mine, mine + 6),
                  testing::ElementsAre(rank, block, rank / 4 % 3, 2u, 24u, block * 24 + rank));
    }
  }
}

template <int kTile>
__global__ void tile_sums(const float* in, float* out, unsigned* part) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<kTile> tile = cg::tiled_partition<kTile>(block);
  float sum = in[block.thread_rank()];
  for (unsigned distance = tile.size() / 2; distance > 0; distance /= 2) {
    sum += tile.shfl_down(sum, distance);
  }
  if (tile.thread_rank() == 0) out[tile.meta_group_rank()] = sum;
  part[block.thread_rank()] = tile.meta_group_size() * 100 + tile.thread_rank();
}

template <int kTile>
void expect_tile_sums() {
  const Vector<float> in = counted(128);
  Vector<float> out(128 / kTile, -1.0f);
  Vector<unsigned> part(128);
  run(dim3(1), dim3(128), tile_sums<kTile>, in.data(), out.data(), part.data());
  for (int i = 0; i < 128 / kTile; ++i) {
    EXPECT_EQ(out[i], std::accumulate(&in[i * kTile], &in[i * kTile] + kTile, 0.0f)) << i;
  }
  for (unsigned i = 0; i < 128; ++i) EXPECT_EQ(part[i], 128u / kTile * 100 + i % kTile);
}

TEST(CooperativeGroups, TilesOfEachSizeShuffleAmongThemselves) {
  expect_tile_sums<1>();
  expect_tile_sums<2>();
  expect_tile_sums<4>();
  expect_tile_sums<8>();
  expect_tile_sums<16>();
  expect_tile_sums<32>();
}

__global__ void votes(unsigned* out) {
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  const unsigned rank = tile.thread_rank();
  unsigned* mine = out + 6 * threadIdx.x;
  mine[0] = tile.ballot(rank % 2 == 0);
  mine[1] = tile.any(rank == 7);
  mine[2] = tile.all(rank < 7);
  mine[3] = tile.match_any(rank / 4);
  mine[4] = tile.shfl(threadIdx.x, 3);
  mine[5] = tile.shfl_xor(threadIdx.x, 1);
}

TEST(CooperativeGroups, VotesOfATileAreInItsOwnRanks) {
  Vector<unsigned> out(6 * 64);
  run(dim3(1), dim3(64), votes, out.data());
  for (unsigned i = 0; i < 64; ++i) {
    EXPECT_THAT(
        Vector<unsigned>(&out[6 * i], &out[6 * i] + 6),
        testing::ElementsAre(0x55u, 1u, 0u, i % 8 < 4 ? 0x0Fu : 0xF0u, i / 8 * 8 + 3, i ^ 1u));
  }
}

struct Wide {
  double a;
  float b;
  int c;
};

__global__ void shuffle_struct(double* out) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const int lane = static_cast<int>(warp.thread_rank());
  const Wide got = warp.shfl(Wide{lane + 0.5, lane + 0.25f, -lane}, 31 - lane);
  out[threadIdx.x] = got.a + got.b + got.c;
}

TEST(CooperativeGroups, ValuesOfAnySizeAreShuffled) {
  Vector<double> out(32);
  run(dim3(1), dim3(32), shuffle_struct, out.data());
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out[i], (31 - i) + 0.75);
}

__global__ void reductions(const float* in, float* out) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  auto tile = cg::tiled_partition<4>(warp);
  const float x = in[threadIdx.x];
  float* mine = out + 6 * threadIdx.x;
  mine[0] = cg::reduce(warp, x, cg::plus<float>());
  mine[1] = cg::reduce(warp, x, cg::greater<float>());
  mine[2] = cg::reduce(tile, x, cg::less<float>());
  mine[3] = cg::inclusive_scan(tile, x);
  mine[4] = cg::exclusive_scan(tile, x, cg::plus<float>());
  mine[5] = static_cast<float>(tile.meta_group_rank());
}

TEST(CooperativeGroups, ReduceAndScanOverTiles) {
  const Vector<float> in = counted(64);
  Vector<float> out(6 * 64);
  run(dim3(1), dim3(64), reductions, in.data(), out.data());
  for (int i = 0; i < 64; ++i) {
    const int warp = i / 32 * 32, tile = i / 4 * 4;
    const float before = std::accumulate(&in[tile], &in[i], 0.0f);
    EXPECT_THAT(
        Vector<float>(&out[6 * i], &out[6 * i] + 6),
        testing::ElementsAre(std::accumulate(&in[warp], &in[warp] + 32, 0.0f), in[warp + 31],
                             in[tile], before + in[i], before, static_cast<float>(i % 32 / 4)));
  }
}

__global__ void reduce_short_warp(const float* in, float* out) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  out[threadIdx.x] = cg::reduce(warp, in[threadIdx.x], cg::plus<float>());
}

TEST(CooperativeGroups, AShortLastWarpReducesWhatItHas) {
  const Vector<float> in = counted(40);
  Vector<float> out(40);
  run(dim3(1), dim3(40), reduce_short_warp, in.data(), out.data());
  EXPECT_EQ(out[0], 32 * 33 / 2.0f);
  for (int i = 32; i < 40; ++i) EXPECT_EQ(out[i], 33 + 34 + 35 + 36 + 37 + 38 + 39 + 40.0f);
}

__global__ void odd_lanes(int* out) {
  int result = -1;
  if (threadIdx.x % 2 == 1) {
    cg::coalesced_group odd = cg::coalesced_threads();
    result = static_cast<int>(1000 * odd.size() + 10 * odd.thread_rank()) +
             (odd.shfl(static_cast<int>(threadIdx.x), 2) == 5);
  }
  out[threadIdx.x] = result;
}

TEST(CooperativeGroups, CoalescedThreadsAreThoseOfTheBranch) {
  Vector<int> out(32);
  run(dim3(1), dim3(32), odd_lanes, out.data());
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out[i], i % 2 ? 16000 + i / 2 * 10 + 1 : -1) << i;
}

// The usual aggregated increment: one atomic for all lanes that take part.
__global__ void filter_positive(const int* in, int* out, int* count) {
  if (in[threadIdx.x] <= 0) return;
  auto active = cg::coalesced_threads();
  int first = 0;
  if (active.thread_rank() == 0) first = atomicAdd(count, static_cast<int>(active.size()));
  out[active.shfl(first, 0) + static_cast<int>(active.thread_rank())] = in[threadIdx.x];
}

TEST(CooperativeGroups, CoalescedThreadsAggregateAnAtomic) {
  Vector<int> in(64), out(64, -1);
  for (int i = 0; i < 64; ++i) in[i] = i % 3 == 0 ? i : -i;
  Vector<int> count(1);
  run(dim3(1), dim3(64), filter_positive, in.data(), out.data(), count.data());
  EXPECT_EQ(count[0], 21);
  std::sort(out.begin(), out.begin() + 21);
  for (int i = 0; i < 21; ++i) EXPECT_EQ(out[i], 3 * (i + 1));
}

__global__ void partitions(unsigned* out) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  auto part = cg::labeled_partition(warp, threadIdx.x % 3);
  auto quarter = cg::tiled_partition(cg::this_thread_block(), 8);
  unsigned* mine = out + 5 * threadIdx.x;
  mine[0] = part.size();
  mine[1] = part.thread_rank();
  mine[2] = part.meta_group_rank() * 10 + part.meta_group_size();
  mine[3] = quarter.size() * 10 + quarter.thread_rank();
  mine[4] = cg::binary_partition(warp, threadIdx.x < 5).size();
}

TEST(CooperativeGroups, PartitionsGroupEqualLabels) {
  Vector<unsigned> out(5 * 32);
  run(dim3(1), dim3(32), partitions, out.data());
  for (unsigned i = 0; i < 32; ++i) {
    EXPECT_THAT(Vector<unsigned>(&out[5 * i], &out[5 * i] + 5),
                testing::ElementsAre(i % 3 < 2 ? 11u : 10u, i / 3, i % 3 * 10 + 3, 80 + i % 8,
                                     i < 5 ? 5u : 27u));
  }
}

__device__ void sync_any(cg::thread_group group) { group.sync(); }

__global__ void stage(const float* in, float* out) {
  __shared__ float staged[96];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, staged, in, sizeof(float) * 96);
  cg::wait(block);
  out[threadIdx.x] = staged[95 - threadIdx.x];
  sync_any(block);
  cg::sync(block);
}

TEST(CooperativeGroups, MemcpyAsyncArrivesAfterWait) {
  const Vector<float> in = counted(96);
  Vector<float> out(96);
  run(dim3(1), dim3(96), stage, in.data(), out.data());
  for (int i = 0; i < 96; ++i) EXPECT_EQ(out[i], in[95 - i]);
}

__global__ void stage_without_wait(const float* in, float* out) {
  __shared__ float staged[96];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, staged, in, sizeof(float) * 96);
  out[threadIdx.x] = staged[95 - threadIdx.x];
}

TEST(CooperativeGroups, MemcpyAsyncWithoutWaitIsFound) {
  const Vector<float> in = counted(96);
  Vector<float> out(96);
  const std::string before = mc_emu_test::findings();
  mc_emu_test::launch_kernel(dim3(1), dim3(96), stage_without_wait, in.data(), out.data());
  EXPECT_THAT(mc_emu_test::findings().substr(before.size()), testing::HasSubstr("shared"));
  mc_emu_reset();
}

}  // namespace
