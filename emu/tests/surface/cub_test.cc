// SPDX-License-Identifier: Apache-2.0
// CUB against plain loops, on kernels that are launched as the rewriter would.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "cub/cub.cuh"
#include "kernel_test.h"

namespace {

using mc_emu_test::run;
using mc_emu_test::Vector;

Vector<int> random_ints(int count, unsigned seed) {
  std::mt19937 random(seed);
  Vector<int> values(static_cast<size_t>(count));
  for (int& v : values) v = static_cast<int>(random() % 201) - 100;
  return values;
}

template <class T>
T sum_of(const Vector<T>& values, int begin, int end) {
  return std::accumulate(values.begin() + begin, values.begin() + end, T{});
}

// Reductions.

template <cub::BlockReduceAlgorithm kAlgorithm, int kX, int kY, int kZ>
__global__ void block_sum(const int* in, int* out) {
  using Reduce = cub::BlockReduce<int, kX, kAlgorithm, kY, kZ>;
  __shared__ typename Reduce::TempStorage storage;
  const int thread = static_cast<int>((threadIdx.z * kY + threadIdx.y) * kX + threadIdx.x);
  const int total = Reduce(storage).Sum(in[blockIdx.x * kX * kY * kZ + thread]);
  if (thread == 0) out[blockIdx.x] = total;
}

template <cub::BlockReduceAlgorithm kAlgorithm, int kX, int kY, int kZ>
void expect_block_sums() {
  const Vector<int> in = random_ints(3 * kX * kY * kZ, 1);
  Vector<int> out(3);
  run(dim3(3), dim3(kX, kY, kZ), block_sum<kAlgorithm, kX, kY, kZ>, in.data(), out.data());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(out[i], sum_of(in, i * kX * kY * kZ, (i + 1) * kX * kY * kZ));
  }
}

TEST(CubBlockReduce, SumsBlocksOfEachShapeByEachAlgorithm) {
  expect_block_sums<cub::BLOCK_REDUCE_WARP_REDUCTIONS, 128, 1, 1>();
  expect_block_sums<cub::BLOCK_REDUCE_RAKING, 100, 1, 1>();
  expect_block_sums<cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, 16, 8, 1>();
  expect_block_sums<cub::BLOCK_REDUCE_WARP_REDUCTIONS, 4, 4, 4>();
}

struct LargerMagnitude {
  __device__ int operator()(int a, int b) const { return std::abs(a) < std::abs(b) ? b : a; }
};

__global__ void block_reductions(const int* in, int* out, int num_valid) {
  using Reduce = cub::BlockReduce<int, 64>;
  __shared__ typename Reduce::TempStorage storage;
  int items[4];
  for (int i = 0; i < 4; ++i) items[i] = in[threadIdx.x * 4 + i];
  const int sum = Reduce(storage).Sum(items);
  __syncthreads();
  const int most = Reduce(storage).Reduce(items, cub::Max());
  __syncthreads();
  const int valid = Reduce(storage).Sum(items[0], num_valid);
  __syncthreads();
  const int custom = Reduce(storage).Reduce(items[0], LargerMagnitude(), num_valid);
  if (threadIdx.x == 0) {
    out[0] = sum;
    out[1] = most;
    out[2] = valid;
    out[3] = custom;
  }
}

TEST(CubBlockReduce, TakesItemsOperatorsAndCounts) {
  const Vector<int> in = random_ints(256, 2);
  Vector<int> out(4);
  constexpr int kValid = 37;
  run(dim3(1), dim3(64), block_reductions, in.data(), out.data(), kValid);
  int valid = 0, custom = 0;
  for (int i = 0; i < kValid; ++i) {
    valid += in[i * 4];
    custom = LargerMagnitude()(custom, in[i * 4]);
  }
  EXPECT_THAT(out, testing::ElementsAre(sum_of(in, 0, 256), *std::max_element(in.begin(), in.end()),
                                        valid, custom));
}

__global__ void arg_max(const float* in, int* place, float* value) {
  using Pair = cub::KeyValuePair<int, float>;
  using Reduce = cub::BlockReduce<Pair, 96>;
  __shared__ typename Reduce::TempStorage storage;
  const int i = static_cast<int>(threadIdx.x);
  const Pair best = Reduce(storage).Reduce(Pair(i, in[i]), cub::ArgMax());
  if (i == 0) {
    *place = best.key;
    *value = best.value;
  }
}

TEST(CubBlockReduce, ArgMaxGivesTheFirstOfEquals) {
  Vector<float> in(96, 1.0f);
  in[40] = in[70] = 5.0f;
  Vector<int> place(1, -1);
  Vector<float> value(1);
  run(dim3(1), dim3(96), arg_max, in.data(), place.data(), value.data());
  EXPECT_EQ(place[0], 40);
  EXPECT_EQ(value[0], 5.0f);
}

__global__ void reuse_without_barrier(const int* in, int* out) {
  using Reduce = cub::BlockReduce<int, 64>;
  __shared__ typename Reduce::TempStorage storage;
  const int a = Reduce(storage).Sum(in[threadIdx.x]);
  const int b = Reduce(storage).Sum(-in[threadIdx.x]);
  if (threadIdx.x == 0) out[0] = a + b;
}

TEST(CubBlockReduce, ReuseOfStorageWithoutABarrierIsFound) {
  const Vector<int> in = random_ints(64, 3);
  int out = 0;
  const std::string before = mc_emu_test::findings();
  mc_emu_test::launch_kernel(dim3(1), dim3(64), reuse_without_barrier, in.data(), &out);
  EXPECT_THAT(mc_emu_test::findings().substr(before.size()), testing::HasSubstr("shared_race"));
  mc_emu_reset();
}

__global__ void warp_reductions(const int* in, int* sums, int* eighths, int* valid) {
  using Warp = cub::WarpReduce<int>;
  using Eighth = cub::WarpReduce<int, 8>;
  __shared__ typename Warp::TempStorage warp_storage[4];
  __shared__ typename Eighth::TempStorage eighth_storage[16];
  const int i = static_cast<int>(threadIdx.x);
  const int sum = Warp(warp_storage[i / 32]).Sum(in[i]);
  const int most = Eighth(eighth_storage[i / 8]).Reduce(in[i], cub::Max());
  const int some = Warp(warp_storage[i / 32]).Sum(in[i], 5);
  if (i % 32 == 0) sums[i / 32] = sum;
  if (i % 32 == 0) valid[i / 32] = some;
  if (i % 8 == 0) eighths[i / 8] = most;
}

TEST(CubWarpReduce, ReducesWarpsAndPartsOfThem) {
  const Vector<int> in = random_ints(128, 4);
  Vector<int> sums(4), eighths(16), valid(4);
  run(dim3(1), dim3(128), warp_reductions, in.data(), sums.data(), eighths.data(), valid.data());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(sums[i], sum_of(in, 32 * i, 32 * i + 32));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(valid[i], sum_of(in, 32 * i, 32 * i + 5));
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(eighths[i], *std::max_element(&in[8 * i], &in[8 * i] + 8));
  }
}

__global__ void warp_segments(const int* in, int* by_head, int* by_tail) {
  using Warp = cub::WarpReduce<int>;
  __shared__ typename Warp::TempStorage storage;
  const int i = static_cast<int>(threadIdx.x);
  by_head[i] = Warp(storage).HeadSegmentedSum(in[i], i % 5 == 0);
  by_tail[i] = Warp(storage).TailSegmentedSum(in[i], i % 5 == 4);
}

TEST(CubWarpReduce, SumsSegments) {
  const Vector<int> in = random_ints(32, 5);
  Vector<int> by_head(32), by_tail(32);
  run(dim3(1), dim3(32), warp_segments, in.data(), by_head.data(), by_tail.data());
  for (int i = 0; i < 32; i += 5) {
    EXPECT_EQ(by_head[i], sum_of(in, i, std::min(i + 5, 32))) << i;
    EXPECT_EQ(by_tail[i], sum_of(in, i, std::min(i + 5, 32))) << i;
  }
}

// Scans.

struct RunningTotal {
  int total;
  __device__ int operator()(int aggregate) {
    const int before = total;
    total += aggregate;
    return before;
  }
};

constexpr int kThreads = 48;
constexpr int kItems = 3;
constexpr int kTile = kThreads * kItems;

__global__ void scan_tiles(const int* in, int* inclusive, int* exclusive, int num_tiles) {
  using Scan = cub::BlockScan<int, kThreads>;
  __shared__ typename Scan::TempStorage storage;
  RunningTotal first{0}, second{1000};
  for (int tile = 0; tile < num_tiles; ++tile) {
    const int start = tile * kTile + static_cast<int>(threadIdx.x) * kItems;
    int items[kItems], sums[kItems], before[kItems];
    for (int i = 0; i < kItems; ++i) items[i] = in[start + i];
    Scan(storage).InclusiveSum(items, sums, first);
    __syncthreads();
    Scan(storage).ExclusiveSum(items, before, second);
    __syncthreads();
    for (int i = 0; i < kItems; ++i) {
      inclusive[start + i] = sums[i];
      exclusive[start + i] = before[i];
    }
  }
}

TEST(CubBlockScan, CarriesAPrefixOverTiles) {
  const Vector<int> in = random_ints(3 * kTile, 6);
  Vector<int> inclusive(in.size()), exclusive(in.size());
  run(dim3(1), dim3(kThreads), scan_tiles, in.data(), inclusive.data(), exclusive.data(), 3);
  int total = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    EXPECT_EQ(exclusive[i], 1000 + total) << i;
    total += in[i];
    EXPECT_EQ(inclusive[i], total) << i;
  }
}

__global__ void scans(const int* in, int* out) {
  using Scan = cub::BlockScan<int, kThreads, cub::BLOCK_SCAN_WARP_SCANS>;
  __shared__ typename Scan::TempStorage storage;
  const int x = in[threadIdx.x];
  int* mine = out + 8 * threadIdx.x;
  int aggregate = 0;
  mine[7] = -12345;
  Scan(storage).InclusiveSum(x, mine[0], mine[1]);
  __syncthreads();
  Scan(storage).ExclusiveSum(x, mine[2]);
  __syncthreads();
  Scan(storage).InclusiveScan(x, mine[3], cub::Max());
  __syncthreads();
  Scan(storage).ExclusiveScan(x, mine[4], -50, cub::Max());
  __syncthreads();
  Scan(storage).ExclusiveScan(x, mine[5], 7, cub::Sum(), aggregate);
  mine[6] = aggregate;
  __syncthreads();
  Scan(storage).ExclusiveScan(x, mine[7], cub::Min());
}

TEST(CubBlockScan, ScansInEachForm) {
  const Vector<int> in = random_ints(kThreads, 7);
  Vector<int> out(8 * kThreads);
  run(dim3(1), dim3(kThreads), scans, in.data(), out.data());
  const int total = sum_of(in, 0, kThreads);
  for (int i = 0; i < kThreads; ++i) {
    const int before = sum_of(in, 0, i);
    const int most_before = i == 0 ? -50 : std::max(-50, *std::max_element(&in[0], &in[i]));
    const int least_before = i == 0 ? -12345 : *std::min_element(&in[0], &in[i]);
    EXPECT_THAT(
        Vector<int>(&out[8 * i], &out[8 * i] + 8),
        testing::ElementsAre(before + in[i], total, before, *std::max_element(&in[0], &in[i] + 1),
                             most_before, before + 7, total, least_before))
        << i;
  }
}

// Not commutative: applies the affine maps x -> a x + b in order.
struct Affine {
  int a, b;
};
struct Compose {
  __device__ Affine operator()(const Affine& f, const Affine& g) const {
    return {f.a * g.a % 97, (f.b * g.a + g.b) % 97};
  }
};

__global__ void affine_scan(const int* in, int* out) {
  using Scan = cub::BlockScan<Affine, 40>;
  __shared__ typename Scan::TempStorage storage;
  Affine maps[2], done[2];
  for (int i = 0; i < 2; ++i) maps[i] = {2 + static_cast<int>(threadIdx.x) % 3, in[threadIdx.x]};
  Scan(storage).InclusiveScan(maps, done, Compose());
  for (int i = 0; i < 2; ++i) out[2 * threadIdx.x + i] = done[i].b;
}

TEST(CubBlockScan, KeepsTheOrderOfOperands) {
  Vector<int> in = random_ints(40, 8);
  for (int& b : in) b += 100;
  Vector<int> out(80);
  run(dim3(1), dim3(40), affine_scan, in.data(), out.data());
  Affine running{1, 0};
  for (int i = 0; i < 80; ++i) {
    const Affine map{2 + i / 2 % 3, in[i / 2]};
    running = i == 0 ? map : Compose()(running, map);
    EXPECT_EQ(out[i], running.b) << i;
  }
}

__global__ void warp_scans(const int* in, int* out) {
  using Warp = cub::WarpScan<int>;
  using Half = cub::WarpScan<int, 16>;
  __shared__ typename Warp::TempStorage storage[2];
  __shared__ typename Half::TempStorage half_storage[4];
  const int i = static_cast<int>(threadIdx.x);
  int* mine = out + 5 * i;
  Warp(storage[i / 32]).InclusiveSum(in[i], mine[0], mine[1]);
  Warp(storage[i / 32]).ExclusiveSum(in[i], mine[2]);
  Half(half_storage[i / 16]).ExclusiveScan(in[i], mine[3], -1000, cub::Max());
  mine[4] = Half(half_storage[i / 16]).Broadcast(in[i], 2);
}

TEST(CubWarpScan, ScansWarpsAndHalves) {
  const Vector<int> in = random_ints(64, 9);
  Vector<int> out(5 * 64);
  run(dim3(1), dim3(64), warp_scans, in.data(), out.data());
  for (int i = 0; i < 64; ++i) {
    const int warp = i / 32 * 32, half = i / 16 * 16;
    const int most = i == half ? -1000 : *std::max_element(&in[half], &in[i]);
    EXPECT_THAT(Vector<int>(&out[5 * i], &out[5 * i] + 5),
                testing::ElementsAre(sum_of(in, warp, i + 1), sum_of(in, warp, warp + 32),
                                     sum_of(in, warp, i), most, in[half + 2]));
  }
}

// Moving and sorting.

template <cub::BlockLoadAlgorithm kLoad, cub::BlockStoreAlgorithm kStore>
__global__ void copy_reversed_items(const int* in, int* out, int count) {
  using Load = cub::BlockLoad<int, kThreads, kItems, kLoad>;
  using Store = cub::BlockStore<int, kThreads, kItems, kStore>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Store::TempStorage store;
  } storage;
  int items[kItems];
  Load(storage.load).Load(in, items, count, -1);
  __syncthreads();
  for (int& item : items) item = item * 2;
  Store(storage.store).Store(out, items, count);
}

TEST(CubBlockLoad, LoadsWhatStoreWritesBack) {
  const Vector<int> in = random_ints(kTile, 10);
  const int count = kTile - 5;
  for (auto kernel :
       {copy_reversed_items<cub::BLOCK_LOAD_DIRECT, cub::BLOCK_STORE_DIRECT>,
        copy_reversed_items<cub::BLOCK_LOAD_WARP_TRANSPOSE, cub::BLOCK_STORE_VECTORIZE>,
        copy_reversed_items<cub::BLOCK_LOAD_STRIPED, cub::BLOCK_STORE_STRIPED>}) {
    Vector<int> out(kTile, 77);
    run(dim3(1), dim3(kThreads), kernel, in.data(), out.data(), count);
    for (int i = 0; i < kTile; ++i) EXPECT_EQ(out[i], i < count ? in[i] * 2 : 77) << i;
  }
}

__global__ void exchange(int* blocked, int* striped) {
  using Exchange = cub::BlockExchange<int, kThreads, kItems>;
  __shared__ typename Exchange::TempStorage storage;
  int items[kItems];
  for (int i = 0; i < kItems; ++i) items[i] = static_cast<int>(threadIdx.x) * kItems + i;
  Exchange(storage).BlockedToStriped(items);
  for (int i = 0; i < kItems; ++i) striped[threadIdx.x * kItems + i] = items[i];
  __syncthreads();
  Exchange(storage).StripedToBlocked(items);
  for (int i = 0; i < kItems; ++i) blocked[threadIdx.x * kItems + i] = items[i];
}

TEST(CubBlockExchange, ChangesTheArrangement) {
  Vector<int> blocked(kTile), striped(kTile);
  run(dim3(1), dim3(kThreads), exchange, blocked.data(), striped.data());
  for (int i = 0; i < kTile; ++i) {
    EXPECT_EQ(blocked[i], i);
    EXPECT_EQ(striped[i], i % kItems * kThreads + i / kItems);
  }
}

template <class Key>
__global__ void sort_block(Key* keys, int* values, bool descending) {
  using Sort = cub::BlockRadixSort<Key, kThreads, kItems, int>;
  __shared__ typename Sort::TempStorage storage;
  Key mine[kItems];
  int own[kItems];
  for (int i = 0; i < kItems; ++i) {
    mine[i] = keys[threadIdx.x * kItems + i];
    own[i] = static_cast<int>(threadIdx.x) * kItems + i;
  }
  if (descending) {
    Sort(storage).SortDescending(mine, own);
  } else {
    Sort(storage).Sort(mine, own);
  }
  for (int i = 0; i < kItems; ++i) {
    keys[threadIdx.x * kItems + i] = mine[i];
    values[threadIdx.x * kItems + i] = own[i];
  }
}

template <class Key>
void expect_sorted(bool descending) {
  Vector<Key> keys;
  for (int x : random_ints(kTile, 11)) keys.push_back(static_cast<Key>(x / 4));
  const Vector<Key> original = keys;
  Vector<int> order(kTile), want(kTile);
  std::iota(want.begin(), want.end(), 0);
  std::stable_sort(want.begin(), want.end(), [&](int a, int b) {
    return descending ? original[a] > original[b] : original[a] < original[b];
  });
  run(dim3(1), dim3(kThreads), sort_block<Key>, keys.data(), order.data(), descending);
  EXPECT_EQ(order, want);
  for (int i = 0; i < kTile; ++i) EXPECT_EQ(keys[i], original[order[i]]);
}

TEST(CubBlockRadixSort, IsStableForEachKindOfKey) {
  for (bool descending : {false, true}) {
    expect_sorted<int>(descending);
    expect_sorted<unsigned>(descending);
    expect_sorted<float>(descending);
    expect_sorted<double>(descending);
    expect_sorted<long long>(descending);
    expect_sorted<signed char>(descending);
  }
}

__global__ void sort_low_bits(unsigned* keys) {
  using Sort = cub::BlockRadixSort<unsigned, 32, 1>;
  __shared__ typename Sort::TempStorage storage;
  unsigned mine[1] = {keys[threadIdx.x]};
  Sort(storage).Sort(mine, 0, 2);
  keys[threadIdx.x] = mine[0];
}

TEST(CubBlockRadixSort, ComparesOnlyTheBitsAskedFor) {
  Vector<unsigned> keys(32);
  std::iota(keys.begin(), keys.end(), 100u);
  Vector<unsigned> want = keys;
  std::stable_sort(want.begin(), want.end(), [](unsigned a, unsigned b) { return a % 4 < b % 4; });
  run(dim3(1), dim3(32), sort_low_bits, keys.data());
  EXPECT_EQ(keys, want);
}

// Host calls.

TEST(CubDevice, ReducesScansAndSortsInTwoCalls) {
  const Vector<int> in = random_ints(1000, 12);
  Vector<int> out(1000);
  size_t num_bytes = 0;
  Vector<int> sum(1), most(1);
  ASSERT_EQ(cub::DeviceReduce::Sum(nullptr, num_bytes, in.data(), sum.data(), 1000), cudaSuccess);
  EXPECT_GT(num_bytes, 0u);
  EXPECT_EQ(sum[0], 0);
  cub::DeviceRadixSort::SortKeys(nullptr, num_bytes, in.data(), out.data(), 1000);
  Vector<char> storage(num_bytes);
  cub::DeviceReduce::Sum(storage.data(), num_bytes, in.data(), sum.data(), 1000);
  cub::DeviceReduce::Max(storage.data(), num_bytes, in.data(), most.data(), 1000);
  EXPECT_EQ(sum[0], sum_of(in, 0, 1000));
  EXPECT_EQ(most[0], *std::max_element(in.begin(), in.end()));

  cub::DeviceScan::ExclusiveSum(storage.data(), num_bytes, in.data(), out.data(), 1000);
  for (int i = 0; i < 1000; i += 111) EXPECT_EQ(out[i], sum_of(in, 0, i));
  cub::DeviceRadixSort::SortKeys(storage.data(), num_bytes, in.data(), out.data(), 1000);
  EXPECT_TRUE(std::is_sorted(out.begin(), out.end()));

  Vector<cub::KeyValuePair<int, int>> best(1);
  cub::DeviceReduce::ArgMin(storage.data(), num_bytes, in.data(), best.data(), 1000);
  EXPECT_EQ(best[0].key, std::min_element(in.begin(), in.end()) - in.begin());
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

struct Square {
  int operator()(int x) const { return x * x; }
};

TEST(CubIterators, ComputeWhatTheyPointTo) {
  const cub::CountingInputIterator<int> counting(5);
  EXPECT_EQ(counting[3], 8);
  EXPECT_EQ(*(counting + 2), 7);
  cub::TransformInputIterator<int, Square, cub::CountingInputIterator<int>> squares(counting,
                                                                                    Square());
  Vector<int> sum(1);
  size_t num_bytes = 1;
  cub::DeviceReduce::Sum(sum.data(), num_bytes, squares, sum.data(), 3);
  EXPECT_EQ(sum[0], 25 + 36 + 49);
  const int data[] = {4, 9};
  EXPECT_EQ((cub::CacheModifiedInputIterator<cub::LOAD_LDG, int>(data)[1]), 9);
  EXPECT_EQ((cub::ArgIndexInputIterator<const int*>(data)[1].value), 9);
  EXPECT_EQ(cub::ConstantInputIterator<int>(3)[100], 3);
}

TEST(CudaStd, IsTheStandardLibrary) {
  EXPECT_EQ(cuda::std::plus<>()(1, 2), 3);
  EXPECT_EQ(cuda::maximum<>()(1, 2), 2);
  EXPECT_EQ(cuda::minimum<float>()(1, 2), 1);
  EXPECT_EQ(cuda::ceil_div(7, 2), 4);
}

}  // namespace
