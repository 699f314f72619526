// SPDX-License-Identifier: Apache-2.0
//
// 8-bit floats: each code up, the edges of rounding down, and their products of matrices. Golden
// values follow from the formats' definition: e4m3 has a bias of 7, no infinity and one NaN of each
// sign; e5m2 has a bias of 15 and is otherwise as IEEE 754.
#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <limits>

#include "ptx/testing/test_device.h"

namespace mc::ptx {
namespace {

using testing::ElementsAreArray;
using testing::IsEmpty;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr uint16_t kHalfNan = 0x7FFF;

// One kernel, each thread of which reads a 16-byte record of x and writes two words of y.
std::string fp8_kernel(const std::string& body) {
  return ".version 8.7\n.target sm_89\n.address_size 64\n"
         ".visible .entry k(.param .u64 x, .param .u64 y)\n{\n"
         ".reg .b16 %h<9>; .reg .b32 %r<20>; .reg .f32 %f<9>; .reg .b64 %l<9>;\n"
         "ld.param.u64 %l1, [x]; ld.param.u64 %l2, [y]; mov.u32 %r1, %tid.x;\n"
         "mad.wide.u32 %l1, %r1, 16, %l1; mad.wide.u32 %l2, %r1, 8, %l2;\n" +
         body + "\nret;\n}\n";
}

class Fp8 : public Kernels {
 protected:
  struct Record {
    uint32_t words[4] = {};
  };
  struct Words {
    uint32_t words[2] = {};
  };

  std::vector<Words> run(const std::string& body, const std::vector<Record>& records) {
    open(fp8_kernel(body));
    const uint64_t y = put(std::vector<Words>(records.size()), "y");
    const LaunchReport report = launch({.kernel = "k",
                                        .block = {static_cast<uint32_t>(records.size()), 1, 1},
                                        .arguments = Arguments().add(put(records, "x")).add(y)});
    EXPECT_THAT(lines_of(report.findings), IsEmpty());
    return get<Words>(y, records.size());
  }

  // The codes of floats, by conversions of pairs whose other half is 1.
  std::vector<int> narrow(const std::string& conversion, const std::vector<float>& values) {
    std::vector<Record> records(values.size());
    for (size_t k = 0; k < values.size(); ++k) {
      records[k].words[0] = std::bit_cast<uint32_t>(values[k]);
    }
    const std::vector<Words> out =
        run("ld.global.f32 %f1, [%l1];\n" + conversion + " %h1, %f1, 0f3F800000;\n" + conversion +
                " %h2, 0f3F800000, %f1;\nmov.b32 %r2, {%h1, %h2}; st.global.b32 [%l2], %r2;",
            records);
    std::vector<int> codes;
    for (const Words& one : out) {
      codes.push_back(static_cast<int>(one.words[0] >> 8 & 0xFF));
      EXPECT_EQ(one.words[0] >> 16 & 0xFF, one.words[0] >> 8 & 0xFF);
      EXPECT_EQ(one.words[0] & 0xFF, one.words[0] >> 24);
    }
    return codes;
  }
};

// The value of a code, by the definition of its format.
float value_of(int code, bool is_e4m3) {
  const int mantissa_bits = is_e4m3 ? 3 : 2, bias = is_e4m3 ? 7 : 15;
  const int mantissa = code & ((1 << mantissa_bits) - 1), exponent = (code & 0x7F) >> mantissa_bits;
  const float sign = code < 128 ? 1.0F : -1.0F;
  if (is_e4m3 && (code & 0x7F) == 0x7F) return kNan;
  if (!is_e4m3 && exponent == 31) return mantissa == 0 ? sign * kInfinity : kNan;
  const int whole = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
  return sign * std::ldexp(static_cast<float>(whole), std::max(exponent, 1) - bias - mantissa_bits);
}

constexpr const char* kE4m3 = "cvt.rn.satfinite.e4m3x2.f32";
constexpr const char* kE5m2 = "cvt.rn.satfinite.e5m2x2.f32";

struct Golden {
  float value;
  int code;
};

void expect_codes(const std::vector<Golden>& rows, const std::vector<int>& codes) {
  ASSERT_EQ(rows.size(), codes.size());
  for (size_t k = 0; k < rows.size(); ++k) EXPECT_EQ(codes[k], rows[k].code) << rows[k].value;
}

std::vector<float> values_of(const std::vector<Golden>& rows) {
  std::vector<float> values;
  for (const Golden& row : rows) values.push_back(row.value);
  return values;
}

TEST_F(Fp8, FineCodesAreTheFloatsOfTheirDefinition) {
  EXPECT_EQ(value_of(0x7E, true), 448);
  EXPECT_EQ(value_of(0x08, true), 0x1p-6F);
  EXPECT_EQ(value_of(0x01, true), 0x1p-9F);
  EXPECT_EQ(value_of(0xC4, true), -3);
}

TEST_F(Fp8, WideCodesAreTheFloatsOfTheirDefinition) {
  EXPECT_EQ(value_of(0x7B, false), 57344);
  EXPECT_EQ(value_of(0x04, false), 0x1p-14F);
  EXPECT_EQ(value_of(0x01, false), 0x1p-16F);
  EXPECT_EQ(value_of(0xC2, false), -3);
  EXPECT_EQ(value_of(0xFC, false), -kInfinity);
}

TEST_F(Fp8, EachCodeBecomesItsHalf) {
  for (const bool is_e4m3 : {true, false}) {
    for (const bool is_relu : {true, false}) {
      const std::string name = std::string("cvt.rn") + (is_relu ? ".relu" : "") + ".f16x2." +
                               (is_e4m3 ? "e4m3x2" : "e5m2x2");
      std::vector<Record> records(256);
      for (uint32_t code = 0; code < 256; ++code) records[code].words[0] = code << 8 | (255 - code);
      const std::vector<Words> out =
          run("ld.global.b16 %h1, [%l1];\n" + name +
                  " %r2, %h1;\nmov.b32 {%h3, %h4}, %r2; cvt.f32.f16 %f1, %h4; cvt.f32.f16 %f2, "
                  "%h3;\nst.global.v2.f32 [%l2], {%f1, %f2};",
              records);
      for (int code = 0; code < 256; ++code) {
        for (int half = 0; half < 2; ++half) {
          float expected = value_of(half == 0 ? code : 255 - code, is_e4m3);
          if (is_relu && !(expected > 0) && expected == expected) expected = 0;
          const float actual = std::bit_cast<float>(out[static_cast<size_t>(code)].words[half]);
          if (expected != expected) {
            EXPECT_NE(actual, actual) << name << " " << code;
          } else {
            EXPECT_EQ(std::bit_cast<uint32_t>(actual), std::bit_cast<uint32_t>(expected))
                << name << " " << code;
          }
        }
      }
    }
  }
}

TEST_F(Fp8, NansBecomeTheCanonicalHalf) {
  for (const char* from : {"e4m3x2", "e5m2x2"}) {
    Record record;
    record.words[0] = 0xFF7F;
    const std::vector<Words> out =
        run("ld.global.b16 %h1, [%l1];\ncvt.rn.f16x2." + std::string(from) +
                " %r2, %h1;\nst.global.b32 [%l2], %r2;",
            {record});
    EXPECT_EQ(out[0].words[0], kHalfNan << 16 | kHalfNan) << from;
  }
}

TEST_F(Fp8, EachFiniteFloatOfACodeBecomesIt) {
  for (const bool is_e4m3 : {true, false}) {
    std::vector<Golden> rows;
    for (int code = 0; code < 256; ++code) {
      const float value = value_of(code, is_e4m3);
      if (std::isfinite(value)) rows.push_back({value, code});
    }
    expect_codes(rows, narrow(is_e4m3 ? kE4m3 : kE5m2, values_of(rows)));
  }
}

TEST_F(Fp8, FineFloatsAreRoundedToEvenAndSaturated) {
  const std::vector<Golden> rows = {
      {1.0625F, 0x38},      // The middle of 1 and 1.125.
      {1.0625001F, 0x39},   // Above it.
      {1.1875F, 0x3A},      // The middle of 1.125 and 1.25.
      {-1.1874999F, 0xB9},  // Below it.
      {1.9375F, 0x40},      // A carry into the exponent.
      {0x1p-10F, 0x00},     // Half of the least subnormal number.
      {0x1.000002p-10F, 0x01},
      {0x3p-10F, 0x02},
      {-0x1p-11F, 0x80},
      {0x1.Ep-7F, 0x08},  // The middle of the largest subnormal and the least normal number.
      {0x1.DFFFFEp-7F, 0x07},
      {1e-45F, 0x00},
      {-1e-45F, 0x80},
      {0.0F, 0x00},
      {-0.0F, 0x80},
      {432, 0x7E},
      {431.99997F, 0x7D},
      {448, 0x7E},
      {464, 0x7E},
      {480, 0x7E},
      {1e30F, 0x7E},
      {-1e30F, 0xFE},
      {kInfinity, 0x7E},
      {-kInfinity, 0xFE},
      {kNan, 0x7F},
      {-kNan, 0x7F},
  };
  expect_codes(rows, narrow(kE4m3, values_of(rows)));
}

TEST_F(Fp8, WideFloatsAreRoundedToEvenAndSaturated) {
  const std::vector<Golden> rows = {
      {1.125F, 0x3C},     {1.1250001F, 0x3D}, {1.375F, 0x3E},          {-1.3749999F, 0xBD},
      {1.875F, 0x40},     {0x1p-17F, 0x00},   {0x1.000002p-17F, 0x01}, {0x3p-17F, 0x02},
      {-0x1p-18F, 0x80},  {0x1.Cp-15F, 0x04}, {0x1.BFFFFEp-15F, 0x03}, {1e-45F, 0x00},
      {-0.0F, 0x80},      {53248, 0x7A},      {53249, 0x7B},           {57344, 0x7B},
      {61440, 0x7B},      {65536, 0x7B},      {-1e30F, 0xFB},          {kInfinity, 0x7B},
      {-kInfinity, 0xFB}, {kNan, 0x7F},       {-kNan, 0x7F},
  };
  expect_codes(rows, narrow(kE5m2, values_of(rows)));
}

TEST_F(Fp8, ReluMakesZeroOfWhatIsNegative) {
  const std::vector<Golden> rows = {{-1, 0},   {-0.0F, 0},        {-kInfinity, 0},
                                    {1, 0x38}, {kInfinity, 0x7E}, {kNan, 0x7F}};
  expect_codes(rows, narrow("cvt.rn.satfinite.relu.e4m3x2.f32", values_of(rows)));
  expect_codes({{-1, 0}, {2, 0x40}}, narrow("cvt.rn.relu.satfinite.e5m2x2.f32", {-1, 2}));
}

// All halves, 1024 threads at a time, give the codes of their floats.
TEST_F(Fp8, HalvesAreRoundedAsTheirFloats) {
  for (const std::string pair : {"e4m3x2", "e5m2x2"}) {
    const std::string narrow = "cvt.rn.satfinite." + pair;
    for (uint32_t begin = 0; begin < 0x10000; begin += 1024) {
      std::vector<Record> records(1024);
      for (uint32_t k = 0; k < 1024; ++k) {
        records[k].words[0] = (begin + k) << 16 | ((begin + k) ^ 0x5555);
      }
      const std::vector<Words> out = run(
          "ld.global.b32 %r2, [%l1];\n" + narrow + ".f16x2 %h1, %r2;\n" +
              "mov.b32 {%h3, %h4}, %r2; cvt.f32.f16 %f1, %h3; cvt.f32.f16 %f2, %h4;\n" + narrow +
              ".f32 %h2, %f2, %f1;\nmov.b32 %r3, {%h1, %h2};\n" + "st.global.b32 [%l2], %r3;",
          records);
      for (const Words& one : out) ASSERT_EQ(one.words[0] & 0xFFFF, one.words[0] >> 16);
    }
  }
}

// An inactive lane keeps its register's value.
TEST_F(Fp8, ConversionsOfSomeLanesLeaveTheOthers) {
  std::vector<Record> records(32);
  const std::vector<Words> out =
      run(".reg .pred %p; and.b32 %r2, %r1, 1; setp.eq.u32 %p, %r2, 0; mov.b16 %h1, 77;\n"
          "mov.b16 %h2, 0x3838; mov.b32 %r3, 99; mov.b32 %r4, 0x3C003C00;\n"
          "@%p cvt.rn.satfinite.e4m3x2.f32 %h1, 0f40000000, 0f3F800000;\n"
          "@%p cvt.rn.f16x2.e4m3x2 %r3, %h2;\n"
          "cvt.u32.u16 %r5, %h1; st.global.v2.b32 [%l2], {%r5, %r3};",
          records);
  for (size_t k = 0; k < 32; ++k) {
    EXPECT_EQ(out[k].words[0], k % 2 == 0 ? 0x4038U : 77U);
    EXPECT_EQ(out[k].words[1], k % 2 == 0 ? 0x3C003C00U : 99U);
  }
}

// ---- Products of matrices. A is 16 rows of 32 numbers, B is 32 rows of 8.

struct Product {
  const char* a;
  const char* b;
  const char* sum;
  int depth;
};

// A code of a small integer in either format.
uint32_t code_of(int value, bool is_e4m3) {
  for (int code = 0; code < 256; ++code) {
    if (value_of(code, is_e4m3) == static_cast<float>(value)) return static_cast<uint32_t>(code);
  }
  return 0;
}

int element_of_a(int row, int k) { return (row * 5 + k * 3) % 9 - 4; }
int element_of_b(int k, int column) { return (k * 7 + column * 2) % 7 - 3; }
int element_of_c(int row, int column) { return row - 2 * column; }

std::string list_of(const std::string& prefix, int first, int count) {
  std::string text;
  for (int k = first; k < first + count; ++k) {
    text += (text.empty() ? "" : ", ") + prefix + std::to_string(k);
  }
  return "{" + text + "}";
}

class Fp8Products : public Fp8, public testing::WithParamInterface<Product> {
 protected:
  // Registers of A and B as the ISA places them: a lane has row lane / 4, and four neighbours of it
  // from 4 (lane % 4) on; then come the rows 8 below, and then the next 16 columns.
  std::vector<std::vector<uint32_t>> fragments() const {
    const Product& one = GetParam();
    const bool a_is_fine = std::string(one.a) == "e4m3", b_is_fine = std::string(one.b) == "e4m3";
    std::vector<std::vector<uint32_t>> lanes(32);
    for (int lane = 0; lane < 32; ++lane) {
      for (int reg = 0; reg < one.depth / 8; ++reg) {
        uint32_t word = 0;
        for (int k = 0; k < 4; ++k) {
          const int row = lane / 4 + 8 * (reg % 2), column = lane % 4 * 4 + 16 * (reg / 2) + k;
          word |= code_of(element_of_a(row, column), a_is_fine) << (8 * k);
        }
        lanes[static_cast<size_t>(lane)].push_back(word);
      }
      for (int reg = 0; reg < one.depth / 16; ++reg) {
        uint32_t word = 0;
        for (int k = 0; k < 4; ++k) {
          const int row = lane % 4 * 4 + 16 * reg + k;
          word |= code_of(element_of_b(row, lane / 4), b_is_fine) << (8 * k);
        }
        lanes[static_cast<size_t>(lane)].push_back(word);
      }
    }
    return lanes;
  }
};

TEST_P(Fp8Products, AreThoseOfTheirMatrices) {
  const Product& one = GetParam();
  const int in_a = one.depth / 8, in_b = one.depth / 16;
  const bool has_halves = std::string(one.sum) == "f16";
  std::vector<uint32_t> words;
  for (const std::vector<uint32_t>& lane : fragments()) {
    words.insert(words.end(), lane.begin(), lane.end());
  }
  std::vector<float> sums(128);
  for (int lane = 0; lane < 32; ++lane) {
    for (int e = 0; e < 4; ++e) {
      sums[static_cast<size_t>(4 * lane + e)] =
          static_cast<float>(element_of_c(lane / 4 + 8 * (e / 2), lane % 4 * 2 + e % 2));
    }
  }
  std::string body = "ld.param.u64 %l1, [x]; ld.param.u64 %l2, [y];\nmad.wide.u32 %l1, %r1, " +
                     std::to_string(4 * (in_a + in_b)) + ", %l1; mad.wide.u32 %l2, %r1, 16, %l2;\n";
  for (int k = 0; k < in_a + in_b; ++k) {
    body += "ld.global.b32 %r" + std::to_string(2 + k) + ", [%l1+" + std::to_string(4 * k) + "];\n";
  }
  body += "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%l2];\n";
  const std::string shape = "mma.sync.aligned.m16n8k" + std::to_string(one.depth) + ".row.col.";
  const std::string parts = ", " + list_of("%r", 2, in_a) + ", " + list_of("%r", 2 + in_a, in_b);
  const std::string types = std::string(".") + one.a + "." + one.b + ".";
  if (has_halves) {
    body += "cvt.rn.f16x2.f32 %r10, %f2, %f1; cvt.rn.f16x2.f32 %r11, %f4, %f3;\n" + shape + "f16" +
            types + "f16 {%r12, %r13}" + parts + ", {%r10, %r11};\n" +
            "mov.b32 {%h1, %h2}, %r12; mov.b32 {%h3, %h4}, %r13;\n";
    for (int k = 1; k <= 4; ++k) {
      body += "cvt.f32.f16 %f" + std::to_string(k) + ", %h" + std::to_string(k) + ";\n";
    }
  } else {
    body +=
        shape + "f32" + types + "f32 {%f1, %f2, %f3, %f4}" + parts + ", {%f1, %f2, %f3, %f4};\n";
  }
  open(fp8_kernel(body + "st.global.v4.f32 [%l2], {%f1, %f2, %f3, %f4};"));
  const uint64_t y = put(sums, "y");
  launch(
      {.kernel = "k", .block = {32, 1, 1}, .arguments = Arguments().add(put(words, "x")).add(y)});
  std::vector<float> expected(128);
  for (int lane = 0; lane < 32; ++lane) {
    for (int e = 0; e < 4; ++e) {
      const int row = lane / 4 + 8 * (e / 2), column = lane % 4 * 2 + e % 2;
      int sum = element_of_c(row, column);
      for (int k = 0; k < one.depth; ++k) sum += element_of_a(row, k) * element_of_b(k, column);
      expected[static_cast<size_t>(4 * lane + e)] = static_cast<float>(sum);
    }
  }
  EXPECT_THAT(get<float>(y, 128), ElementsAreArray(expected));
}

INSTANTIATE_TEST_SUITE_P(
    AllTypes, Fp8Products,
    testing::Values(Product{"e4m3", "e4m3", "f32", 32}, Product{"e4m3", "e5m2", "f32", 32},
                    Product{"e5m2", "e4m3", "f32", 32}, Product{"e5m2", "e5m2", "f32", 32},
                    Product{"e4m3", "e5m2", "f32", 16}, Product{"e4m3", "e5m2", "f16", 32},
                    Product{"e5m2", "e4m3", "f16", 16}),
    [](const testing::TestParamInfo<Product>& test) {
      const Product& one = test.param;
      return std::string(one.a) + "_" + one.b + "_" + one.sum + "_" + std::to_string(one.depth);
    });

}  // namespace
}  // namespace mc::ptx
