// SPDX-License-Identifier: Apache-2.0
#include "task/correctness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace mc::task {
namespace {

using testing::HasSubstr;

TEST(Correctness, HasValidDefaultsThatAreListedFirst) {
  const Correctness defaults;
  EXPECT_TRUE(check(defaults));
  EXPECT_EQ(input_sets().front(), defaults.inputs);
  EXPECT_EQ(modes().front(), defaults.mode);
  EXPECT_EQ(precisions().front(), defaults.precision);
}

TEST(Correctness, NamesTheInvalidMember) {
  const struct {
    Correctness correctness;
    const char* words;
  } kTable[] = {
      {{.trials = 0}, "trials: expected 1 to 100, got 0"},
      {{.trials = 101}, "trials: expected 1 to 100, got 101"},
      {{.inputs = "random"}, "inputs: expected varied, native or verified, got \"random\""},
      {{.mode = ""}, "mode: expected train or eval, got \"\""},
      {{.precision = "fp8"}, "precision: expected task, fp32, fp16 or bf16, got \"fp8\""},
      {{.tolerance_fp32 = 0}, "tolerance: expected a positive number"},
      {{.tolerance_half = std::numeric_limits<double>::quiet_NaN()},
       "tolerance_half: expected a positive number"},
  };
  for (const auto& row : kTable) {
    const Status status = check(row.correctness);
    ASSERT_FALSE(status) << row.words;
    EXPECT_THAT(status.error().message, HasSubstr(row.words));
  }
}

TEST(Correctness, HasAKeyThatDependsOnEachMember) {
  const std::string key = to_string(Correctness());
  EXPECT_EQ(to_string(Correctness()), key);
  for (const Correctness& other :
       {Correctness{.trials = 4}, Correctness{.inputs = "native"}, Correctness{.shapes = false},
        Correctness{.require_general = true}, Correctness{.mode = "eval"},
        Correctness{.precision = "bf16"}, Correctness{.tolerance_fp32 = 1.0000000001e-4},
        Correctness{.tolerance_half = 2e-2}}) {
    EXPECT_NE(to_string(other), key);
  }
}

}  // namespace
}  // namespace mc::task
