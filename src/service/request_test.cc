// SPDX-License-Identifier: Apache-2.0
#include "service/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mc::service {
namespace {

using testing::HasSubstr;

Result<Request> parsed(const std::string& options, const task::Correctness& defaults = {}) {
  const std::string text =
      R"({"id": "a", "task": {"code": "x"}, "answer": "y", "options": )" + options + "}";
  return parse_request(text, {}, defaults);
}

TEST(ServiceRequest, HasTheSettingsOfTheServiceUnlessItOverridesThem) {
  const task::Correctness defaults{.trials = 3, .precision = "fp16"};
  const auto plain = parse_request(R"({"task": {"code": "x"}, "answer": "y"})", {}, defaults);
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->correctness, defaults);
  const auto request = parsed(
      R"({"precision": "bf16", "mode": "eval", "inputs": "verified", "shapes": false,
          "require_general": true, "tolerance": 1e-3, "tolerance_half": 0.1})",
      defaults);
  ASSERT_TRUE(request);
  const task::Correctness expected{.trials = 3,
                                   .inputs = "verified",
                                   .shapes = false,
                                   .require_general = true,
                                   .mode = "eval",
                                   .precision = "bf16",
                                   .tolerance_fp32 = 1e-3,
                                   .tolerance_half = 0.1};
  EXPECT_EQ(request->correctness, expected);
}

TEST(ServiceRequest, NamesTheDialectOfItsCandidate) {
  const auto plain = parsed("{}");
  const auto musa = parsed(R"({"dialect": "musa"})");
  ASSERT_TRUE(plain && musa);
  EXPECT_EQ(plain->dialect, std::nullopt);
  EXPECT_EQ(musa->dialect, task::Dialect::kMusa);
  EXPECT_NE(content_key(*plain), content_key(*musa));
}

TEST(ServiceRequest, NamesTheInvalidOption) {
  const struct {
    const char* options;
    const char* words;
  } kTable[] = {
      {"7", "\"options\" is an object"},
      {R"({"precison": "bf16"})", "\"options\" has no \"precison\""},
      {R"({"precision": 16})", "precision has the wrong type"},
      {R"({"trials": 1.5})", "trials has the wrong type"},
      {R"({"shapes": 1})", "shapes has the wrong type"},
      {R"({"trials": 0})", "trials: expected 1 to 100"},
      {R"({"trials": 99999999999})", "trials: expected 1 to 100"},
      {R"({"mode": "test"})", "mode: expected train or eval"},
      {R"({"tolerance": 0})", "tolerance: expected a positive number"},
      {R"({"dialect": "hip"})", "dialect: expected \"cuda\" or \"musa\""},
  };
  for (const auto& row : kTable) {
    const auto request = parsed(row.options);
    ASSERT_FALSE(request) << row.options;
    EXPECT_THAT(request.error().message, HasSubstr(row.words));
  }
}

}  // namespace
}  // namespace mc::service
