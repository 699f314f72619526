// SPDX-License-Identifier: Apache-2.0
#include "cli/numbers.h"

#include <string>

#include <gtest/gtest.h>

namespace mc::cli {
namespace {

std::string check_message(const CLI::Validator& check, std::string text) { return check(text); }

TEST(Numbers, AcceptNumbersInRange) {
  for (const char* text : {"0", "3", "0.5", "1e9"})
    EXPECT_EQ(check_message(kNotNegative, text), "");
  for (const char* text : {"3", "0.5", "1e-300"}) EXPECT_EQ(check_message(kPositive, text), "");
}

TEST(Numbers, OfARangeIncludeItsEndsAndExcludeNan) {
  const CLI::Validator check = number_range(0.01, 10);
  for (const char* text : {"0.01", "1", "10"}) EXPECT_EQ(check_message(check, text), "") << text;
  for (const char* text : {"0", "10.1", "-1", "nan", "inf", "", "1x"}) {
    EXPECT_EQ(check_message(check, text),
              std::string("expected a number from 0.01 to 10, got \"") + text + '"');
  }
}

TEST(Numbers, OfAWholeRangeHaveNoFraction) {
  const CLI::Validator check = whole_range(1, 256);
  for (const char* text : {"1", "256"}) EXPECT_EQ(check_message(check, text), "") << text;
  for (const char* text : {"0", "257", "1.5", "nan", "", "x", "99999999999999999999"}) {
    EXPECT_EQ(check_message(check, text),
              std::string("expected a whole number from 1 to 256, got \"") + text + '"');
  }
}

TEST(Numbers, ReportTheExpectedValue) {
  EXPECT_EQ(check_message(kNotNegative, "-3"), "expected a number from 0 on, got \"-3\"");
  EXPECT_EQ(check_message(kPositive, "0"), "expected a number above 0, got \"0\"");
  for (const char* text : {"", "x", "3x", "nan", "inf"}) {
    EXPECT_NE(check_message(kNotNegative, text), "") << text;
    EXPECT_NE(check_message(kPositive, text), "") << text;
  }
}

TEST(OneOf, NamesTheAcceptedWords) {
  const CLI::Validator check = one_of({"cuda", "musa", "hip"});
  EXPECT_EQ(check_message(check, "musa"), "");
  EXPECT_EQ(check_message(check, "cud"), "expected cuda, musa or hip, got \"cud\"");
  EXPECT_EQ(check.get_description(), "cuda|musa|hip");
}

TEST(ByteSize, AcceptsANumberWithAUnitAndRejectsTooFewBytes) {
  const CLI::Validator check = byte_size(256 << 20, "256MiB");
  const struct {
    std::string text, bytes;
  } kTaken[] = {{"4GiB", "4294967296"}, {"512mb", "536870912"}, {"300000000", "300000000"}};
  for (const auto& [text, bytes] : kTaken) {
    std::string read = text;
    EXPECT_EQ(check(read), "") << text;
    EXPECT_EQ(read, bytes);
  }
  for (const char* text : {"10", "0", "-1", "4GX", "x", "", "16EiB", "nan"}) {
    EXPECT_EQ(check_message(check, text),
              std::string("expected a size of 256MiB or more, such as 4GiB, got \"") + text + '"');
  }
}

}  // namespace
}  // namespace mc::cli
