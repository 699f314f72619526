// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <bit>
#include <cmath>

#include "ptx/testing/test_device.h"

namespace mc::ptx {
namespace {

using testing::IsEmpty;

class Matrices : public Kernels {
 protected:
  void SetUp() override { open(read_testdata("matrix.ptx")); }
};

// Small integers, exact in a half.
uint16_t small_half(int value) {
  if (value == 0) return 0;
  const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  return static_cast<uint16_t>((bits >> 16 & 0x8000) | ((bits & 0x7FFFFFFF) - (112U << 23)) >> 13);
}

TEST_F(Matrices, HalvesMultiplyThroughCopiesAndLdmatrix) {
  constexpr int kSide = 128;
  std::vector<uint16_t> a(kSide * kSide), b(kSide * kSide);
  auto x = [](int k) { return k * 7 % 11 - 5; };
  auto y = [](int k) { return k * 5 % 13 - 6; };
  for (int k = 0; k < kSide * kSide; ++k) {
    a[k] = small_half(x(k));
    b[k] = small_half(y(k));
  }
  const uint64_t c = put(std::vector<float>(a.size()), "c");
  const LaunchReport report =
      launch({.kernel = "mma_matmul",
              .grid = {2, 2, 1},
              .block = {128, 1, 1},
              .arguments = Arguments().add(put(a, "a")).add(put(b, "b")).add(c).add(kSide)});
  EXPECT_THAT(lines_of(report.findings), IsEmpty());
  const std::vector<float> out = get<float>(c, a.size());
  for (int i = 0; i < kSide; ++i) {
    for (int j = 0; j < kSide; ++j) {
      int sum = 0;
      for (int k = 0; k < kSide; ++k) sum += x(i * kSide + k) * y(k * kSide + j);
      ASSERT_EQ(out[i * kSide + j], sum) << i << " " << j;
    }
  }
}

TEST_F(Matrices, BytesAndBitsMultiply) {
  std::vector<uint32_t> a(128), b(64);
  std::mt19937 generator(11);
  for (uint32_t& word : a) word = generator();
  for (uint32_t& word : b) word = generator();
  const uint64_t c = put(std::vector<int>(128), "c"), d = put(std::vector<int>(128), "d");
  launch({.kernel = "mma_small",
          .block = {32, 1, 1},
          .arguments = Arguments().add(put(a, "a")).add(put(b, "b")).add(c).add(d)});
  const std::vector<int> bytes = get<int>(c, 128), bits = get<int>(d, 128);
  // Word r of lane l holds row l / 4 + 8 (r % 2) of a, at word l % 4 + 4 (r / 2).
  auto a_word = [&](int row, int w) { return a[(row / 8 + w / 4 * 2) * 32 + row % 8 * 4 + w % 4]; };
  auto b_word = [&](int column, int w) { return b[w / 4 * 32 + column * 4 + w % 4]; };
  for (int l = 0; l < 32; ++l) {
    for (int e = 0; e < 4; ++e) {
      const int row = l / 4 + e / 2 * 8, column = l % 4 * 2 + e % 2;
      int sum = 0, differences = 0;
      for (int w = 0; w < 8; ++w) {
        const uint32_t x = a_word(row, w), y = b_word(column, w);
        for (int k = 0; k < 32; k += 8) {
          sum += static_cast<int8_t>(x >> k) * static_cast<uint8_t>(y >> k);
        }
        differences += std::popcount(x ^ y);
      }
      EXPECT_EQ(bytes[e * 32 + l], sum);
      EXPECT_EQ(bits[e * 32 + l], differences);
    }
  }
}

TEST_F(Matrices, DoublesMultiply) {
  std::vector<double> a(32), b(32);
  for (int k = 0; k < 32; ++k) {
    a[k] = k * 0.25 - 3;
    b[k] = 5 - k * 0.5;
  }
  const uint64_t c = put(std::vector<double>(64), "c");
  launch({.kernel = "mma_doubles",
          .block = {32, 1, 1},
          .arguments = Arguments().add(put(a, "a")).add(put(b, "b")).add(c)});
  const std::vector<double> out = get<double>(c, 64);
  for (int l = 0; l < 32; ++l) {
    for (int e = 0; e < 2; ++e) {
      double sum = 1 + e;
      for (int k = 0; k < 4; ++k) sum += a[l / 4 * 4 + k] * b[(l % 4 * 2 + e) * 4 + k];
      EXPECT_EQ(out[2 * l + e], sum);
    }
  }
}

}  // namespace
}  // namespace mc::ptx
