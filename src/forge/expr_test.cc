// SPDX-License-Identifier: Apache-2.0
#include "forge/expr.h"

#include <gmock/gmock.h>

namespace mc::forge {
namespace {

using ::testing::HasSubstr;

std::string cuda(const char* text) {
  const auto expr = parse_expr(text);
  if (!expr) return expr.error().message;
  return cuda_text(*expr, {[](const std::string& name) { return name; },
                           [](const Expr& access) { return access.text + "[]"; }});
}

double value(const char* text) {
  return evaluate_with(parse_expr(text).value(), [](const std::string&) { return 7.0; });
}

TEST(Expr, PrintsFloatsAsCudaText) {
  EXPECT_EQ(cuda("max(v, 0.0)"), "fmaxf(v, 0.0f)");
  EXPECT_EQ(cuda("max(v, u)"), "larger(v, u)");
  EXPECT_EQ(cuda("v > 0.0 ? v : 0.5 * v"), "v > 0.0f ? v : 0.5f * v");
  EXPECT_EQ(cuda("(v + u) * w - (a - b)"), "(v + u) * w - (a - b)");
}

TEST(Expr, KeepsIntegersAsIntegers) {
  EXPECT_EQ(cuda("(n + 1) / 2"), "(n + 1) / 2");
  EXPECT_EQ(cuda("max(0, n - 1)"), "max(0, n - 1)");
  EXPECT_EQ(value("n / 2"), 3);
  EXPECT_EQ(value("v / 2.0"), 3.5);
}

TEST(Expr, EvaluatesByPrecedence) {
  EXPECT_EQ(value("1 + 2 * 3"), 7);
  EXPECT_EQ(value("n % 4 == 3 && n > 2"), 1);
  EXPECT_EQ(value("-v + 10.0 - 1.0"), 2);
}

TEST(Expr, NamesThePositionOfASyntaxError) {
  EXPECT_THAT(cuda("v + "), HasSubstr("is not a formula"));
  EXPECT_THAT(cuda("v ) u"), HasSubstr("character 3"));
}

TEST(BindNames, RejectsATensorThatIsNotAnOperand) {
  Expr expr = parse_expr("x[n]").value();
  std::vector<std::string> names;
  EXPECT_FALSE(bind_names(expr, names, {"y"}));
  EXPECT_TRUE(bind_names(expr, names, {"y", "x"}));
  EXPECT_EQ(expr.slot, 1);
}

}  // namespace
}  // namespace mc::forge
