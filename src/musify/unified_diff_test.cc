// SPDX-License-Identifier: Apache-2.0
#include "musify/unified_diff.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace mc::musify {
namespace {

TEST(UnifiedDiff, IsEmptyForEqualTexts) {
  EXPECT_EQ(unified_diff("a\nb\n", "a\nb\n", "x", "y"), "");
}

TEST(UnifiedDiff, HasThreeLinesAroundAChange) {
  EXPECT_EQ(
      unified_diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n", "a/f", "b/f"),
      "--- a/f\n+++ b/f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

TEST(UnifiedDiff, SaysWhereALineHasNoEnd) {
  EXPECT_EQ(unified_diff("a", "b\n", "x", "y"),
            "--- x\n+++ y\n@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+b\n");
}

TEST(UnifiedDiff, NamesTheLineBeforeAnAddition) {
  EXPECT_EQ(unified_diff("", "a\n", "x", "y"), "--- x\n+++ y\n@@ -0,0 +1,1 @@\n+a\n");
}

std::vector<std::string> lines_in(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The text that a diff makes of another one, all of whose lines end; "?" where it does not fit.
std::string patched(const std::string& before, const std::string& diff) {
  const std::vector<std::string> lines = lines_in(before);
  std::string after;
  size_t at = 0;
  for (const std::string& line : lines_in(diff)) {
    unsigned first = 0, count = 0;
    if (line.starts_with("---") || line.starts_with("+++")) continue;
    if (std::sscanf(line.c_str(), "@@ -%u,%u", &first, &count) == 2) {
      const size_t wanted = count == 0 ? first : first - 1;
      while (at < wanted) after += lines[at++] + "\n";
      continue;
    }
    if (line[0] != '+' && (at >= lines.size() || lines[at] != line.substr(1))) return "?";
    if (line[0] != '+') ++at;
    if (line[0] != '-') after += line.substr(1) + "\n";
  }
  while (at < lines.size()) after += lines[at++] + "\n";
  return after;
}

TEST(UnifiedDiff, TurnsOneTextIntoTheOther) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 2000; ++i) {
    std::string before, after;
    for (unsigned k = random() % 30; k > 0; --k) {
      const std::string line = std::string(1, static_cast<char>('a' + random() % 4)) + "\n";
      const unsigned kind = random() % 8;
      if (kind != 0) before += line;
      if (kind == 2) after += "new\n";
      if (kind != 1) after += line;
    }
    EXPECT_EQ(patched(before, unified_diff(before, after, "x", "y")), after) << before;
  }
}

}  // namespace
}  // namespace mc::musify
