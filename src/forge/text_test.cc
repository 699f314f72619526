// SPDX-License-Identifier: Apache-2.0
#include "forge/text.h"

#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace mc::forge {
namespace {

// A random text with nested sites: the text with marks, and the text and sites that they stand for.
struct Marked {
  std::string marked;
  std::string plain;
  std::vector<Site> sites;  // In the order in which they begin.
};

void add_parts(Marked& text, std::mt19937& random, int depth) {
  for (size_t part = random() % 4; part > 0; --part) {
    if (depth == 0 || random() % 2 == 0) {
      const std::string word(random() % 4, static_cast<char>('a' + random() % 26));
      text.marked += word;
      text.plain += word;
      continue;
    }
    const size_t number = text.sites.size();
    text.sites.push_back({"kind" + std::to_string(number), text.plain.size(), 0});
    Marked inner{"", text.plain, text.sites};
    add_parts(inner, random, depth - 1);
    text.marked += site(text.sites[number].kind, inner.marked);
    text.plain = inner.plain;
    text.sites = inner.sites;
    text.sites[number].size = text.plain.size() - text.sites[number].offset;
  }
}

TEST(Sites, AreFoundAtTheirMarksAlsoIfNested) {
  constexpr unsigned kRandomSeed = 3;
  std::mt19937 random(kRandomSeed);
  size_t num_sites = 0;
  for (int round = 0; round < 500; ++round) {
    Marked expected;
    add_parts(expected, random, 4);
    std::vector<Site> sites;
    ASSERT_EQ(without_marks(expected.marked, sites), expected.plain) << "seed " << kRandomSeed;
    ASSERT_EQ(sites.size(), expected.sites.size());
    for (size_t i = 0; i < sites.size(); ++i) {
      ASSERT_EQ(sites[i].kind, expected.sites[i].kind)
          << "seed " << kRandomSeed << ", round " << round;
      ASSERT_EQ(sites[i].offset, expected.sites[i].offset);
      ASSERT_EQ(sites[i].size, expected.sites[i].size);
    }
    num_sites += sites.size();
  }
  EXPECT_GT(num_sites, 500u);
}

TEST(Words, AreWholeIdentifiers) {
  const struct {
    const char* text;
    const char* replaced;  // The text with x replaced by "y".
  } kTable[] = {
      {"x", "y"},         {"x + x", "y + y"}, {"ax + xa + x1", "ax + xa + x1"},
      {"a.x", "a.x"},     {"x.a", "y.a"},     {"x[x]", "y[y]"},
      {"_x x_", "_x x_"}, {"-x*2", "-y*2"},   {"xx", "xx"},
      {"", ""},           {"x\nx", "y\ny"},   {"f(x,x)", "f(y,y)"},
  };
  for (const auto& row : kTable) {
    EXPECT_EQ(with_word(row.text, "x", "y"), row.replaced) << row.text;
    EXPECT_EQ(has_word(row.text, "x"), std::string(row.text) != row.replaced) << row.text;
  }
  EXPECT_EQ(with_word("x", "x", "x + x"), "x + x");  // The new text is not searched again.
}

TEST(Substituted, ReplacesEachKeyOnceAlsoByATextThatContainsIt) {
  EXPECT_EQ(substituted("{a} {a}", "{a}", "x"), "x x");
  EXPECT_EQ(substituted("{a}", "{a}", "{a}{a}"), "{a}{a}");
  EXPECT_EQ(substituted("none", "{a}", "x"), "none");
}

TEST(Indented, LeavesEmptyLinesEmpty) {
  EXPECT_EQ(indented("a\n\n  b\n", 2), "  a\n\n    b\n");
  EXPECT_EQ(indented("a", 4), "    a");
  EXPECT_EQ(indented("", 4), "");
}

TEST(UnusedName, IsTheFirstThatDoesNotOccurInTheText) {
  EXPECT_EQ(unused_name("v0 v1", "v", 0), "v2");
  EXPECT_EQ(unused_name("v0 v10", "v", 1), "v1");
  EXPECT_EQ(unused_name("a.v3", "v", 3), "v3");
}

TEST(Parenthesized, IsAnyTextOfMoreThanOneWord) {
  EXPECT_EQ(parenthesized("12"), "12");
  EXPECT_EQ(parenthesized("n"), "n");
  EXPECT_EQ(parenthesized("n + 1"), "(n + 1)");
  EXPECT_EQ(parenthesized("-1"), "(-1)");
}

}  // namespace
}  // namespace mc::forge
