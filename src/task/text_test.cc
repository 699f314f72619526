// SPDX-License-Identifier: Apache-2.0
#include "task/text.h"

#include <string>

#include <gtest/gtest.h>

namespace mc::task {
namespace {

using std::string_literals::operator""s;

TEST(Text, MakesOnePlainLine) {
  const struct {
    std::string text;
    std::string line;
  } kTable[] = {
      {"plain", "plain"},
      {"  two\r\n\t lines \n", "two lines"},
      {"\x1b[31mred\x1b[0m", "[31mred[0m"},
      {"a\0b\x7f"s, "ab"},
      {"a\xff", "a\uFFFD"},
      {"a\u202Eb\u200Bc", "abc"},
      {"a\u2028b", "a b"},
      {"カーネル", "カーネル"},
      {"0123456789abcdefg", "0123456789abc..."},
      {"0123456789abcdef", "0123456789abcdef"},
      {"0123456789abé€€", "0123456789ab..."},  // Never half a character.
  };
  for (const auto& row : kTable) EXPECT_EQ(plain_line(row.text, 16), row.line);
}

TEST(Text, NamesAPlace) {
  EXPECT_EQ(location_name({"cuda_sources[0]", 12, 3, "x"}), "cuda_sources[0]:12");
  EXPECT_EQ(location_name({"candidate", 0, 0, ""}), "candidate");
  EXPECT_EQ(location_name({"a\nb", 1, 0, ""}), "a b:1");
  EXPECT_EQ(location_name({}), "");
}

TEST(Text, NamesASignal) {
  EXPECT_EQ(signal_name(11), "SIGSEGV");
  EXPECT_EQ(signal_name(6), "SIGABRT");
  EXPECT_EQ(signal_name(999), "signal 999");
}

}  // namespace
}  // namespace mc::task
