// SPDX-License-Identifier: Apache-2.0
#include "core/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace mc {
namespace {

using std::string_literals::operator""s;

TEST(Utf8, FindsTheFirstByteThatIsNotUtf8) {
  const struct {
    std::string text;
    size_t offset;
  } kTable[] = {
      {"", 0},
      {"a\0b"s, 3},
      {"é€😀", 9},
      {"a\x80", 1},
      {"a\xc3", 1},
      {"\xc3\x28", 0},
      {"\xc0\xaf", 0},          // Overlong '/'.
      {"\xe0\x80\xaf", 0},      // Overlong '/'.
      {"\xed\xa0\x80", 0},      // A surrogate.
      {"\xf4\x90\x80\x80", 0},  // Past U+10FFFF.
      {"\xf4\x8f\xbf\xbf", 4},  // U+10FFFF.
      {"ok\xf0\x9f\x98", 2},    // Incomplete character.
      {"\xff", 0},
      {"\xf0\x80\x80\x80", 0},
      {"\xf5\x80\x80\x80", 0},
  };
  for (const auto& row : kTable) EXPECT_EQ(first_invalid_utf8(row.text), row.offset) << row.text;
}

TEST(Utf8, ReadsACharacter) {
  EXPECT_EQ(first_character("€x").code, 0x20AC);
  EXPECT_EQ(first_character("€x").num_bytes, 3u);
  EXPECT_EQ(first_character("\x80x").num_bytes, 0u);
}

TEST(LoneSurrogates, AreReplacedAndNothingElseIs) {
  const std::pair<const char*, const char*> kTable[] = {
      {R"("plain")", R"("plain")"},
      {R"("\ud800")", R"("\ufffd")"},
      {R"("\uDFFF\uD800")", R"("\ufffd\ufffd")"},
      {R"("\ud83d\ude00")", R"("\ud83d\ude00")"},
      {R"("\ud83d\ud83d\ude00x")", R"("\ufffd\ud83d\ude00x")"},
      {R"("\\ud800")", R"("\\ud800")"},    // A backslash, and then letters.
      {R"("\\\ud800")", R"("\\\ufffd")"},  // A backslash, and then half a pair.
      {R"("\u0041\n\ud7ff\ue000")", R"("\u0041\n\ud7ff\ue000")"},
      {R"("\ud8)", R"("\ud8)"},
      {R"("\)", R"("\)"},
      {R"("\u-800")", R"("\u-800")"},
  };
  for (const auto& [text, expected] : kTable) EXPECT_EQ(without_lone_surrogates(text), expected);
}

}  // namespace
}  // namespace mc
