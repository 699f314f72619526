// SPDX-License-Identifier: Apache-2.0
//
// The executor against the twin: each form of an instruction, kernels of memory and meetings, and
// random kernels. MC_PTX_KERNELS and MC_PTX_SEED choose how many random ones and which (100 and 1).
#include <gmock/gmock.h>

#include <bit>
#include <cstdlib>
#include <string>

#include "ptx/testing/case.h"
#include "ptx/testing/twin.h"
#include "ptx/testing/twin_values.h"

namespace mc::ptx {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// Forms whose results in the executor differ from the ISA, or on which the ISA is not clear. Each
// has a disabled test below, which fails until the executor is right; then the form leaves this
// list.
const std::vector<std::string> kKnownDifferences = {"relu", "div.approx"};

bool is_known(const Case& one) {
  for (const std::string& form : kKnownDifferences) {
    if (one.results[0].name.find(form) != std::string::npos) return true;
  }
  return false;
}

uint64_t number_of_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// The difference of the executor from the twin's output, an error included; or empty.
std::string difference_of(const CaseRunner& runner, const Case& one,
                          const std::vector<uint8_t>& expected) {
  const Result<std::vector<uint8_t>> actual = runner.run_executor(one);
  return actual ? describe_difference(one, expected, *actual) : actual.error().message;
}

// The executor with one worker and with two, against one run of the twin.
void expect_agreement(const std::vector<CaseModule>& modules) {
  for (const CaseModule& module : modules) {
    const Result<CaseRunner> runner = CaseRunner::create(module);
    const Result<CaseRunner> two = CaseRunner::create(module, {.workers = 2});
    ASSERT_TRUE(runner && two) << module.name;
    for (const Case& one : module.cases) {
      if (is_known(one)) continue;
      const Result<std::vector<uint8_t>> expected = runner->run_twin(one);
      ASSERT_TRUE(expected) << expected.error().message;
      EXPECT_THAT(difference_of(*runner, one, *expected), IsEmpty());
      EXPECT_THAT(difference_of(*two, one, *expected), IsEmpty()) << "with two workers";
    }
  }
}

// The cases of the table whose form contains a text must agree.
void expect_agreement_of(const std::string& form) {
  int num_cases = 0;
  for (const CaseModule& module : table_cases()) {
    const Result<CaseRunner> runner = CaseRunner::create(module);
    ASSERT_TRUE(runner) << runner.error().message;
    for (const Case& one : module.cases) {
      if (one.results[0].name.find(form) == std::string::npos) continue;
      ++num_cases;
      const Result<std::vector<uint8_t>> expected = runner->run_twin(one);
      ASSERT_TRUE(expected) << expected.error().message;
      EXPECT_THAT(difference_of(*runner, one, *expected), IsEmpty());
    }
  }
  EXPECT_GT(num_cases, 0);
}

TEST(InstructionTable, ExecutorAndTwinAgree) { expect_agreement(table_cases()); }

TEST(GeneratedKernels, ExecutorAndTwinAgree) {
  GenerateOptions options;
  options.seed = number_of_environment("MC_PTX_SEED", 1);
  options.count = static_cast<int>(number_of_environment("MC_PTX_KERNELS", 100));
  options.without = kKnownDifferences;
  SCOPED_TRACE("MC_PTX_SEED=" + std::to_string(options.seed));
  expect_agreement(generate_cases(options));
}

TEST(GeneratedKernels, AreTheSameForASeed) {
  const std::vector<CaseModule> a = generate_cases({7, 5, {}}), b = generate_cases({7, 5, {}});
  EXPECT_EQ(a.at(0).text(), b.at(0).text());
  EXPECT_EQ(a.at(0).cases.at(3).input, b.at(0).cases.at(3).input);
  EXPECT_NE(a.at(0).text(), generate_cases({8, 5, {}}).at(0).text());
}

// -0 gives +0.
TEST(KnownDifference, DISABLED_ReluGivesPlusZero) { expect_agreement_of("relu"); }

// Quotients by more than 2^126 are 0, or NaN for an infinity.
TEST(KnownDifference, DISABLED_DivApproxByLargeNumbersIsZero) { expect_agreement_of("div.approx"); }

// Encode rounds as the hardware of the host does.
TEST(TwinValues, RoundsToFloat32AsTheHostDoes) {
  Random random(3);
  for (int k = 0; k < 20000; ++k) {
    const double value = std::bit_cast<double>(random.bits());
    const uint64_t bits = encode(value, Type::kF32, RoundingMode::kNearest);
    if (value != value) continue;
    ASSERT_EQ(bits, std::bit_cast<uint32_t>(static_cast<float>(value))) << value;
  }
}

TEST(TwinValues, RoundsHalfwayCasesByTheMode) {
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

std::string error_of_twin(const std::string& body, uint32_t threads) {
  const Result<Module> module = parse(kernel(body));
  EXPECT_TRUE(module) << module.error().message;
  if (!module) return "";
  std::vector<TwinMemory> memory;
  const Status status = run_twin({.module = *module,
                                  .kernel = "k",
                                  .block = {threads, 1, 1},
                                  .parameters = {},
                                  .steps_max = 1000},
                                 memory);
  return status ? "" : status.error().message;
}

TEST(Twin, ReportsWhatIsWrongWithItsLine) {
  EXPECT_THAT(error_of_twin(".reg .b64 %l; mov.u64 %l, 64;\nst.global.b32 [%l], 1;", 1),
              HasSubstr("an access out of bounds at \"st.global.b32\", PTX line 7"));
  EXPECT_THAT(error_of_twin("bar.sync 0, 64;", 32), HasSubstr("no thread can go on"));
  EXPECT_THAT(error_of_twin("$a: bra $a;", 1), HasSubstr("too many steps"));
  EXPECT_THAT(error_of_twin("trap;", 1), HasSubstr("a trap"));
}

}  // namespace
}  // namespace mc::ptx
