// SPDX-License-Identifier: Apache-2.0
// The rest of <cub/cub.cuh>: selections, histograms, comparison sorts and neighbours.
#include "cub/cub.cuh"

#include "kernel_test.h"

namespace {

using mc_emu_test::findings;
using mc_emu_test::run;
using mc_emu_test::Vector;
using ::testing::ElementsAre;

// Asks for the storage, then runs.
template <class Algorithm>
void in_storage(Algorithm algorithm) {
  findings();
  size_t bytes = 0;
  EXPECT_EQ(algorithm(nullptr, bytes), cudaSuccess);
  Vector<double> storage(bytes / sizeof(double) + 1);
  EXPECT_EQ(algorithm(static_cast<void*>(storage.data()), bytes), cudaSuccess);
}

TEST(CubDevice, Selects) {
  Vector<int> in{3, 1, 4, 1, 5, 5, 2}, out(7, 0), kept(1, 0);
  in_storage([&](void* storage, size_t& bytes) {
    return cub::DeviceSelect::If(storage, bytes, in.data(), out.data(), kept.data(), 7,
                                 [](int x) { return x > 2; });
  });
  EXPECT_EQ(kept[0], 4);
  EXPECT_THAT(std::vector<int>(out.begin(), out.begin() + 4), ElementsAre(3, 4, 5, 5));
  in_storage([&](void* storage, size_t& bytes) {
    return cub::DeviceSelect::Unique(storage, bytes, in.data(), out.data(), kept.data(), 7);
  });
  EXPECT_EQ(kept[0], 6);
}

TEST(CubDevice, CountsAndEncodes) {
  Vector<float> in{0.5f, 1.5f, 1.25f, 3.5f, -1.0f, 4.0f};
  Vector<int> bins(4, 9);
  in_storage([&](void* storage, size_t& bytes) {
    return cub::DeviceHistogram::HistogramEven(storage, bytes, in.data(), bins.data(), 5, 0.0f,
                                               4.0f, 6);
  });
  EXPECT_THAT(std::vector<int>(bins.begin(), bins.end()), ElementsAre(1, 2, 0, 1));
  Vector<int> runs_in{7, 7, 7, 2, 2, 7}, unique(6, 0), lengths(6, 0), runs(1, 0);
  in_storage([&](void* storage, size_t& bytes) {
    return cub::DeviceRunLengthEncode::Encode(storage, bytes, runs_in.data(), unique.data(),
                                              lengths.data(), runs.data(), 6);
  });
  EXPECT_EQ(runs[0], 3);
  EXPECT_THAT(std::vector<int>(lengths.begin(), lengths.begin() + 3), ElementsAre(3, 2, 1));
}

TEST(CubDevice, SortsByAComparison) {
  Vector<int> keys{3, 1, 4, 1, 5}, values{0, 1, 2, 3, 4};
  in_storage([&](void* storage, size_t& bytes) {
    return cub::DeviceMergeSort::StableSortPairs(storage, bytes, keys.data(), values.data(), 5,
                                                 [](int a, int b) { return a > b; });
  });
  EXPECT_THAT(std::vector<int>(keys.begin(), keys.end()), ElementsAre(5, 4, 3, 1, 1));
  EXPECT_THAT(std::vector<int>(values.begin(), values.end()), ElementsAre(4, 2, 0, 1, 3));
}

void block_kernel(const int* in, int* out) {
  using Sort = cub::BlockMergeSort<int, 32, 2>;
  using Heads = cub::BlockDiscontinuity<int, 32>;
  using Difference = cub::BlockAdjacentDifference<int, 32>;
  __shared__ typename Sort::TempStorage sort;
  __shared__ typename Heads::TempStorage heads;
  __shared__ typename Difference::TempStorage difference;
  int items[2] = {in[2 * threadIdx.x], in[2 * threadIdx.x + 1]}, flags[2], steps[2];
  Sort(sort).Sort(items, [](int a, int b) { return a < b; });
  Heads(heads).FlagHeads(flags, items, [](int a, int b) { return a != b; });
  Difference(difference).SubtractLeft(items, steps, [](int a, int b) { return a - b; });
  for (unsigned i = 0; i < 2; ++i) {
    out[2 * threadIdx.x + i] = items[i];
    out[64 + 2 * threadIdx.x + i] = flags[i];
    out[128 + 2 * threadIdx.x + i] = steps[i];
  }
}

TEST(CubBlock, SortsAndComparesNeighbours) {
  Vector<int> in(64), out(192);
  for (int i = 0; i < 64; ++i) in[static_cast<size_t>(i)] = (i * 37) % 64 / 2;
  run(1, 32, block_kernel, in.data(), out.data());
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(out[i], static_cast<int>(i / 2));
    EXPECT_EQ(out[64 + i], i % 2 == 0);
    EXPECT_EQ(out[128 + i], i == 0 ? 0 : static_cast<int>(i % 2 == 0));
  }
}

}  // namespace
