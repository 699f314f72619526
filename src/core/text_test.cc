// SPDX-License-Identifier: Apache-2.0
#include "core/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Text, KnowsTheBytesOfWords) {
  for (const char c : {'a', 'z', 'A', 'Z', '0', '9', '_'}) EXPECT_TRUE(is_word_byte(c)) << c;
  for (const char c : {'@', '[', '`', '{', '/', ':', '-', '$', ' ', '\0', '\xc3'}) {
    EXPECT_FALSE(is_word_byte(c)) << c;
  }
}

TEST(Text, FindsWholeWordsOnly) {
  EXPECT_TRUE(contains_word("warp", "warp"));
  EXPECT_TRUE(contains_word("a warp-wide sum", "warp"));
  EXPECT_TRUE(contains_word("warps, then warp", "warp")) << "a later occurrence";
  EXPECT_FALSE(contains_word("warps", "warp"));
  EXPECT_FALSE(contains_word("a_warp", "warp"));
  EXPECT_FALSE(contains_word("2warp", "warp"));
  EXPECT_FALSE(contains_word("", "warp"));
}

TEST(Text, TrimsBothEnds) {
  EXPECT_EQ(trimmed(" \t a b\r"), "a b");
  EXPECT_EQ(trimmed("\na\n"), "\na\n") << "a line break is not a blank";
  EXPECT_EQ(trimmed(" \t\r"), "");
  EXPECT_EQ(trimmed(""), "");
  EXPECT_EQ(trimmed("xxaxbxx", "x"), "axb");
}

TEST(Text, SplitsLinesOfBothKinds) {
  EXPECT_THAT(lines_of(""), IsEmpty());
  EXPECT_THAT(lines_of("a"), ElementsAre("a"));
  EXPECT_THAT(lines_of("a\n"), ElementsAre("a"));
  EXPECT_THAT(lines_of("a\r\n\nb\rc"), ElementsAre("a", "", "b\rc"));
}

}  // namespace
}  // namespace mc
