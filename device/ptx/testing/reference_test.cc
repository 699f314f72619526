// SPDX-License-Identifier: Apache-2.0
//
// The executor against the reference: each form of an instruction, kernels of memory and meetings,
// and random kernels. MC_PTX_KERNELS and MC_PTX_SEED choose how many random ones and which (100 and
// 1).
#include <gmock/gmock.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <string>

#include "ptx/testing/case.h"
#include "ptx/testing/reference.h"
#include "ptx/testing/reference_values.h"

namespace mc::ptx {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

uint64_t number_of_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// The difference between the executor's and the reference's output, or an error; empty if equal.
std::string difference_of(const CaseRunner& runner, const Case& one,
                          const std::vector<uint8_t>& expected) {
  const Result<std::vector<uint8_t>> actual = runner.run_executor(one);
  return actual ? describe_difference(one, expected, *actual) : actual.error().message;
}

// The executor with one worker and with two, against one run of the reference.
void expect_agreement(const std::vector<CaseModule>& modules) {
  for (const CaseModule& module : modules) {
    const Result<CaseRunner> runner = CaseRunner::create(module);
    const Result<CaseRunner> two = CaseRunner::create(module, {.workers = 2});
    ASSERT_TRUE(runner && two) << module.name;
    for (const Case& one : module.cases) {
      const Result<std::vector<uint8_t>> expected = runner->run_reference(one);
      ASSERT_TRUE(expected) << expected.error().message;
      EXPECT_THAT(difference_of(*runner, one, *expected), IsEmpty());
      EXPECT_THAT(difference_of(*two, one, *expected), IsEmpty()) << "with two workers";
    }
  }
}

TEST(InstructionTable, ExecutorAndReferenceAgree) { expect_agreement(table_cases()); }

TEST(GeneratedKernels, ExecutorAndReferenceAgree) {
  GenerateOptions options;
  options.seed = number_of_environment("MC_PTX_SEED", 1);
  options.count = static_cast<int>(number_of_environment("MC_PTX_KERNELS", 100));
  SCOPED_TRACE("MC_PTX_SEED=" + std::to_string(options.seed));
  expect_agreement(generate_cases(options));
}

TEST(GeneratedKernels, AreTheSameForASeed) {
  const std::vector<CaseModule> a = generate_cases({7, 5, {}}), b = generate_cases({7, 5, {}});
  EXPECT_EQ(a.at(0).text(), b.at(0).text());
  EXPECT_EQ(a.at(0).cases.at(3).input, b.at(0).cases.at(3).input);
  EXPECT_NE(a.at(0).text(), generate_cases({8, 5, {}}).at(0).text());
}

// A result that was observed on an H100.
struct Fact {
  std::string instruction;
  std::vector<const char*> sources;
  uint32_t result;
};

// A kernel of one thread that stores the result of an instruction of constants of a type.
Case case_of(const Fact& fact, Type type) {
  const std::string width = std::to_string(8 * bytes_of(type));
  Case one;
  one.name = "fact";
  one.results.push_back({fact.instruction, type, 0, 0, {}});
  one.output_bytes = bytes_of(type);
  one.input.resize(8);
  one.num_records = 1;
  std::string moves, operands;
  for (size_t k = 0; k < fact.sources.size(); ++k) {
    const std::string name = "%s" + std::to_string(k);
    moves += "mov.b" + width + " " + name + ", " + fact.sources[k] + ";\n";
    operands += ", " + name;
  }
  one.text = ".visible .entry fact(.param .u64 in, .param .u64 out)\n{\n.reg .b64 %out;\n.reg .b" +
             width + " %d, %s<3>;\nld.param.u64 %out, [out];\n" + moves + fact.instruction + " %d" +
             operands + ";\nst.global.b" + width + " [%out], %d;\nret;\n}\n";
  return one;
}

void expect_fact(const Fact& fact) {
  const Type type = fact.instruction.ends_with(".f16") ? Type::kB16 : Type::kB32;
  const Case one = case_of(fact, type);
  const Result<CaseRunner> runner =
      CaseRunner::create({"fact", ".version 8.0\n.target sm_80\n.address_size 64\n", {one}});
  ASSERT_TRUE(runner) << runner.error().message;
  std::vector<uint8_t> expected(static_cast<size_t>(one.output_bytes));
  std::memcpy(expected.data(), &fact.result, expected.size());
  EXPECT_THAT(difference_of(*runner, one, expected), IsEmpty()) << "the executor";
  const Result<std::vector<uint8_t>> reference = runner->run_reference(one);
  ASSERT_TRUE(reference) << reference.error().message;
  EXPECT_THAT(describe_difference(one, expected, *reference), IsEmpty()) << "the reference";
}

TEST(GpuResult, ReluMakesPlusZeroOfMinusZero) {
  expect_fact({"fma.rn.ftz.relu.f16", {"0x03FF", "0xB64C", "0x80A8"}, 0});
  expect_fact({"fma.rn.relu.f16x2", {"0x4F18AE12", "0x8000193F", "0x8000FC00"}, 0});
  expect_fact({"fma.rn.relu.bf16x2", {"0x00004020", "0x80013300", "0x80004120"}, 0x4120});
  expect_fact({"cvt.rn.relu.f16x2.f32", {"0x80000000", "0x3F7FFFFF"}, 0x3C00});
}

TEST(GpuResult, DivApproxByNumbersAbove2To126IsZero) {
  expect_fact({"div.approx.f32", {"0xBF7FFFFF", "0x7E967699"}, 0x80000000});
  expect_fact({"div.approx.ftz.f32", {"0x477FE000", "0x7E967699"}, 0});
}

TEST(GpuResult, FtzFlushesWhatIsTinyWhenRoundedWithoutALeastExponent) {
  expect_fact({"mul.rn.ftz.f32", {"0x3F7FFFFF", "0x00800000"}, 0});
  expect_fact({"fma.rn.ftz.f16", {"0x8400", "0x8F24", "0x8400"}, 0x8000});
  expect_fact({"fma.rn.ftz.f16x2", {"0x5C000400", "0xD7F08C41", "0x5C000400"}, 0xF7E00000});
  expect_fact({"fma.rn.ftz.f16x2", {"0x8400FC00", "0x8400FC00", "0x8400FC00"}, 0x84007FFF});
}

TEST(GpuResult, Tf32KeepsTheUpperBitsOfANan) {
  expect_fact({"cvt.rna.tf32.f32", {"0x7F800001"}, 0x7F800000});
  expect_fact({"cvt.rna.tf32.f32", {"0x7FE9873C"}, 0x7FE98000});
}

// Encode rounds as the hardware of the host does.
TEST(ReferenceValues, RoundsToFloat32AsTheHostDoes) {
  Random random(3);
  for (int k = 0; k < 20000; ++k) {
    const double value = std::bit_cast<double>(random.bits());
    const uint64_t bits = encode(value, Type::kF32, RoundingMode::kNearest);
    if (value != value) continue;
    ASSERT_EQ(bits, std::bit_cast<uint32_t>(static_cast<float>(value))) << value;
  }
}

TEST(ReferenceValues, RoundsHalfwayCasesByTheMode) {
  struct Row {
    double value;
    RoundingMode mode;
    uint64_t bits;
  };
  const Row rows[] = {
      {65520, RoundingMode::kNearest, 0x7C00}, {65520, RoundingMode::kZero, 0x7BFF},
      {65519, RoundingMode::kNearest, 0x7BFF}, {-65520, RoundingMode::kDown, 0xFC00},
      {0x1p-25, RoundingMode::kNearest, 0},    {0x1p-25, RoundingMode::kUp, 1},
      {0x3p-25, RoundingMode::kNearest, 2},    {-0x1p-25, RoundingMode::kUp, 0x8000},
      {2049, RoundingMode::kNearest, 0x6800},  {2051, RoundingMode::kNearest, 0x6802},
  };
  for (const Row& row : rows) EXPECT_EQ(encode(row.value, Type::kF16, row.mode), row.bits);
}

std::string kernel(const std::string& body) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n" + body + "\n}\n";
}

std::string error_of_reference(const std::string& body, uint32_t threads) {
  const Result<Module> module = parse(kernel(body));
  EXPECT_TRUE(module) << module.error().message;
  if (!module) return "";
  std::vector<ReferenceMemory> memory;
  const Status status = run_reference({.module = *module,
                                       .kernel = "k",
                                       .block = {threads, 1, 1},
                                       .parameters = {},
                                       .steps_max = 1000},
                                      memory);
  return status ? "" : status.error().message;
}

TEST(Reference, ReportsWhatIsWrongWithItsLine) {
  EXPECT_THAT(error_of_reference(".reg .b64 %l; mov.u64 %l, 64;\nst.global.b32 [%l], 1;", 1),
              HasSubstr("an access out of bounds at \"st.global.b32\", PTX line 7"));
  EXPECT_THAT(error_of_reference("bar.sync 0, 64;", 32), HasSubstr("no thread can go on"));
  EXPECT_THAT(error_of_reference("$a: bra $a;", 1), HasSubstr("too many steps"));
  EXPECT_THAT(error_of_reference("trap;", 1), HasSubstr("a trap"));
}

}  // namespace
}  // namespace mc::ptx
