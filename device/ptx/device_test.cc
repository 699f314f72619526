// SPDX-License-Identifier: Apache-2.0
#include "ptx/device.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

namespace mc::ptx {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::string read_testdata(const std::string& name) {
  std::ifstream file(std::string(MC_PTX_DIR) + "/testdata/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> lines_of(const std::vector<Finding>& findings) {
  std::vector<std::string> lines;
  for (const Finding& one : findings) lines.push_back(describe(one));
  return lines;
}

// A device with a module, and arrays of floats on it.
class Kernels : public testing::Test {
 protected:
  void open(const std::string& text, int workers = 1) {
    DeviceOptions options;
    options.memory_bytes = 256 << 20;
    options.workers = workers;
    Result<std::unique_ptr<Device>> device = Device::create(options);
    ASSERT_TRUE(device) << device.error().message;
    device_ = std::move(device).value();
    Result<ModuleId> module = device_->load(text);
    ASSERT_TRUE(module) << module.error().message;
    module_ = *module;
  }

  template <class T>
  uint64_t put(const std::vector<T>& values, const std::string& name) {
    const auto bytes = std::as_bytes(std::span(values));
    Result<uint64_t> address = device_->allocate(bytes.size(), name);
    EXPECT_TRUE(address) << address.error().message;
    const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
    EXPECT_TRUE(device_->copy_in(*address, {data, bytes.size()}));
    return *address;
  }

  template <class T>
  std::vector<T> get(uint64_t address, size_t count) {
    std::vector<T> values(count);
    auto* data = reinterpret_cast<uint8_t*>(values.data());
    EXPECT_TRUE(device_->copy_out(address, {data, count * sizeof(T)}));
    return values;
  }

  LaunchReport launch(LaunchOptions options) {
    options.module = module_;
    Result<LaunchReport> report = device_->launch(options);
    EXPECT_TRUE(report) << report.error().message;
    return report ? *report : LaunchReport{};
  }

  std::vector<float> random(size_t count, unsigned seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& value : values) value = normal(generator);
    return values;
  }

  std::unique_ptr<Device> device_;
  ModuleId module_ = 0;
};

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

}  // namespace
}  // namespace mc::ptx
