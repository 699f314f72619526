// SPDX-License-Identifier: Apache-2.0
#include "cli/numbers.h"

#include <string>

#include <gtest/gtest.h>

namespace mc::cli {
namespace {

std::string told(const CLI::Validator& check, std::string text) { return check(text); }

TEST(Numbers, TakesWhatIsInRange) {
  for (const char* text : {"0", "3", "0.5", "1e9"}) EXPECT_EQ(told(kNotNegative, text), "");
  for (const char* text : {"3", "0.5", "1e-300"}) EXPECT_EQ(told(kPositive, text), "");
}

TEST(Numbers, OfARangeHaveItsEndsAndNotNan) {
  const CLI::Validator check = number_range(0.01, 10);
  for (const char* text : {"0.01", "1", "10"}) EXPECT_EQ(told(check, text), "") << text;
  for (const char* text : {"0", "10.1", "-1", "nan", "inf", "", "1x"}) {
    EXPECT_EQ(told(check, text), std::string("a number from 0.01 to 10 is needed, not ") + text);
  }
}

TEST(Numbers, SaysWhatIsNeeded) {
  EXPECT_EQ(told(kNotNegative, "-3"), "a number from 0 on is needed, not -3");
  EXPECT_EQ(told(kPositive, "0"), "a number above 0 is needed, not 0");
  for (const char* text : {"", "x", "3x", "nan", "inf"}) {
    EXPECT_NE(told(kNotNegative, text), "") << text;
    EXPECT_NE(told(kPositive, text), "") << text;
  }
}

}  // namespace
}  // namespace mc::cli
