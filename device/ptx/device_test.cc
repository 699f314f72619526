// SPDX-License-Identifier: Apache-2.0
#include "ptx/device.h"

#include <gmock/gmock.h>

#include <cmath>

#include "ptx/testing/test_device.h"

namespace mc::ptx {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(Kernels, AddOfArraysIsTheSumOfEach) {
  open(read_testdata("basic.ptx"));
  constexpr int kCount = 1003;
  const std::vector<float> a = random(kCount, 1), b = random(kCount, 2);
  const uint64_t c = put(std::vector<float>(kCount), "c");
  Arguments arguments;
  arguments.add(put(a, "a")).add(put(b, "b")).add(c).add(kCount);
  const LaunchReport report =
      launch({.kernel = "add", .grid = {4, 1, 1}, .block = {256, 1, 1}, .arguments = arguments});
  EXPECT_THAT(lines_of(report.findings), IsEmpty());
  const std::vector<float> sums = get<float>(c, kCount);
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(sums[i], a[i] + b[i]) << i;
}

TEST_F(Kernels, ShufflesSumRows) {
  open(read_testdata("basic.ptx"));
  constexpr int kRows = 8, kColumns = 1000;
  const std::vector<float> x = random(kRows * kColumns, 3);
  const uint64_t y = put(std::vector<float>(kRows), "y");
  Arguments arguments;
  arguments.add(put(x, "x")).add(y).add(kColumns);
  const LaunchReport report = launch(
      {.kernel = "row_sums", .grid = {kRows, 1, 1}, .block = {256, 1, 1}, .arguments = arguments});
  EXPECT_THAT(lines_of(report.findings), IsEmpty());
  const std::vector<float> sums = get<float>(y, kRows);
  for (int r = 0; r < kRows; ++r) {
    double sum = 0;
    for (int i = 0; i < kColumns; ++i) sum += x[r * kColumns + i];
    EXPECT_NEAR(sums[r], sum, 1e-4);
  }
}

TEST_F(Kernels, SoftmaxOfRowsSumsToOne) {
  open(read_testdata("basic.ptx"));
  constexpr int kRows = 5, kColumns = 777;
  const std::vector<float> x = random(kRows * kColumns, 4);
  const uint64_t y = put(std::vector<float>(x.size()), "y");
  Arguments arguments;
  arguments.add(put(x, "x")).add(y).add(kColumns);
  const LaunchReport report = launch({.kernel = "softmax",
                                      .grid = {kRows, 1, 1},
                                      .block = {128, 1, 1},
                                      .shared_bytes = 512,
                                      .arguments = arguments});
  EXPECT_THAT(lines_of(report.findings), IsEmpty());
  const std::vector<float> out = get<float>(y, x.size());
  for (int r = 0; r < kRows; ++r) {
    double sum = 0;
    for (int i = 0; i < kColumns; ++i) sum += std::exp(double{x[r * kColumns + i]});
    for (int i = 0; i < kColumns; ++i) {
      ASSERT_NEAR(out[r * kColumns + i], std::exp(double{x[r * kColumns + i]}) / sum, 1e-6);
    }
  }
}

TEST_F(Kernels, MatmulsMultiplyMatrices) {
  open(read_testdata("basic.ptx"));
  constexpr int kSide = 128;
  const std::vector<float> a = random(kSide * kSide, 5), b = random(kSide * kSide, 6);
  struct Case {
    const char* kernel;
    std::array<uint32_t, 3> grid, block;
  };
  const Case cases[] = {{"tiled_matmul", {8, 8, 1}, {16, 16, 1}},
                        {"register_matmul", {2, 2, 1}, {256, 1, 1}}};
  for (const Case& one : cases) {
    const uint64_t c = put(std::vector<float>(a.size()), "c");
    Arguments arguments;
    arguments.add(put(a, "a")).add(put(b, "b")).add(c).add(kSide);
    const LaunchReport report = launch(
        {.kernel = one.kernel, .grid = one.grid, .block = one.block, .arguments = arguments});
    EXPECT_THAT(lines_of(report.findings), IsEmpty()) << one.kernel;
    const std::vector<float> out = get<float>(c, a.size());
    for (int i = 0; i < kSide; ++i) {
      for (int j = 0; j < kSide; ++j) {
        double sum = 0;
        for (int k = 0; k < kSide; ++k) sum += double{a[i * kSide + k]} * b[k * kSide + j];
        ASSERT_NEAR(out[i * kSide + j], sum, 1e-3) << one.kernel;
      }
    }
  }
}

TEST_F(Kernels, ReadBeyondAnAllocationIsFoundWithItsPlace) {
  open(read_testdata("basic.ptx"));
  const std::vector<float> small(100), large(128);
  Arguments arguments;
  arguments.add(put(small, "a")).add(put(large, "b")).add(put(large, "c")).add(128);
  const LaunchReport report =
      launch({.kernel = "add", .grid = {1, 1, 1}, .block = {128, 1, 1}, .arguments = arguments});
  EXPECT_FALSE(report.is_complete);
  ASSERT_EQ(report.findings.size(), 1U);
  const Finding& one = report.findings[0];
  EXPECT_EQ(one.kind, FindingKind::kOutOfBoundsRead);
  EXPECT_EQ(one.array, "a");
  EXPECT_EQ(one.line, 9);
  EXPECT_EQ(one.thread->thread[0], 100U);
  EXPECT_THAT(one.detail, HasSubstr("at byte 400 of 400 bytes"));
}

// The kernels whose threads need no warps of 32.
TEST_F(Kernels, WarpsOf128LanesComputeTheSame) {
  constexpr int kSide = 64, kColumns = 333;
  const std::vector<float> a = random(kSide * kSide, 7), b = random(kSide * kSide, 8);
  std::vector<std::vector<float>> products, rows;
  for (const int lanes : {32, 128}) {
    DeviceOptions options;
    options.lanes = lanes;
    open(read_testdata("basic.ptx"), options);
    const uint64_t c = put(std::vector<float>(a.size()), "c");
    const uint64_t y = put(std::vector<float>(a.size()), "y");
    Arguments product, softmax;
    product.add(put(a, "a")).add(put(b, "b")).add(c).add(kSide);
    softmax.add(put(a, "x")).add(y).add(kColumns);
    const LaunchReport report = launch({.kernel = "tiled_matmul",
                                        .grid = {kSide / 16, kSide / 16, 1},
                                        .block = {16, 16, 1},
                                        .arguments = product});
    EXPECT_THAT(lines_of(report.findings), IsEmpty());
    const LaunchReport other = launch({.kernel = "softmax",
                                       .grid = {4, 1, 1},
                                       .block = {256, 1, 1},
                                       .shared_bytes = 1024,
                                       .arguments = softmax});
    EXPECT_THAT(lines_of(other.findings), IsEmpty());
    products.push_back(get<float>(c, a.size()));
    rows.push_back(get<float>(y, a.size()));
  }
  EXPECT_EQ(products[0], products[1]);
  EXPECT_EQ(rows[0], rows[1]);
}

TEST_F(Kernels, TwoWorkersGiveTheSameBytesAndFindings) {
  struct Outcome {
    std::vector<std::string> findings;
    std::vector<float> out;
    std::vector<int> sums;
  };
  std::vector<Outcome> outcomes;
  const std::vector<float> x = random(64 * 1000, 9);
  for (const int workers : {1, 2, 2}) {
    DeviceOptions options;
    options.workers = workers;
    Outcome outcome;
    open(read_testdata("basic.ptx"), options);
    const uint64_t y = put(std::vector<float>(64), "y");
    launch({.kernel = "row_sums",
            .grid = {64, 1, 1},
            .block = {256, 1, 1},
            .arguments = Arguments().add(put(x, "x")).add(y).add(1000)});
    outcome.out = get<float>(y, 64);
    open(read_testdata("features.ptx"), options);
    const uint64_t sums = put(std::vector<int>(4), "sums"), f = put(std::vector<float>(1), "f");
    const uint64_t w = put(std::vector<int>(1), "w"), wide = put(std::vector<uint64_t>(1), "wide");
    launch({.kernel = "atomics",
            .grid = {64, 1, 1},
            .block = {64, 1, 1},
            .arguments = Arguments().add(sums).add(f).add(w).add(wide)});
    outcome.sums = get<int>(sums, 4);
    open(read_testdata("faults.ptx"), options);
    const LaunchReport report = launch({.kernel = "unwritten",
                                        .grid = {64, 1, 1},
                                        .block = {64, 1, 1},
                                        .arguments = Arguments().add(y)});
    outcome.findings = lines_of(report.findings);
    outcomes.push_back(std::move(outcome));
  }
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.out, outcomes[0].out);
    EXPECT_EQ(outcome.sums, outcomes[0].sums);
    EXPECT_EQ(outcome.findings, outcomes[0].findings);
  }
}

// Kernels whose results depend on the order of blocks, or that end before all blocks ran.
TEST_F(Kernels, WorkersGiveTheBytesAndFindingsOfOneWhereBlocksRaceOrFail) {
  struct Case {
    const char* kernel;
    uint32_t blocks, threads;
    int64_t words, limit;
  };
  const Case cases[] = {{"global_race", 64, 1, 64, 0},
                        {"shift_in_place", 64, 64, 4097, 0},
                        {"shift_in_place", 2, 64, 129, 0},
                        {"beyond_global", 64, 64, 3000, 4095}};
  for (const Case& one : cases) {
    for (const uint64_t seed : {0, 5}) {
      std::vector<std::pair<std::vector<std::string>, std::vector<float>>> outcomes;
      for (const int workers : {1, 2, 2, 2}) {
        DeviceOptions options;
        options.workers = workers;
        open(read_testdata("faults.ptx"), options);
        const uint64_t y = put(random(static_cast<size_t>(one.words), 1), "y");
        const LaunchReport report = launch({.kernel = one.kernel,
                                            .grid = {one.blocks, 1, 1},
                                            .block = {one.threads, 1, 1},
                                            .arguments = Arguments().add(y).add(one.limit),
                                            .seed = seed});
        EXPECT_FALSE(report.findings.empty());
        outcomes.push_back(
            {lines_of(report.findings), get<float>(y, static_cast<size_t>(one.words))});
      }
      for (const auto& outcome : outcomes) EXPECT_EQ(outcome, outcomes[0]) << one.kernel;
    }
  }
}

}  // namespace
}  // namespace mc::ptx
