// SPDX-License-Identifier: Apache-2.0
#include "cli/suggest.h"

#include <gtest/gtest.h>

namespace mc::cli {
namespace {

TEST(EditDistance, CountsAddedRemovedAndReplacedLetters) {
  const struct {
    const char* a;
    const char* b;
    size_t distance;
  } kTable[] = {{"", "", 0},           {"eval", "eval", 0},     {"", "eval", 4},
                {"evl", "eval", 1},    {"evals", "eval", 1},    {"evul", "eval", 1},
                {"bnech", "bench", 2}, {"kitten", "sitting", 3}};
  for (const auto& row : kTable) {
    EXPECT_EQ(edit_distance(row.a, row.b), row.distance) << row.a << " " << row.b;
    EXPECT_EQ(edit_distance(row.b, row.a), row.distance) << row.b << " " << row.a;
  }
}

TEST(UnknownSubcommand, SuggestsTheNearestOneIfOneIsNear) {
  const std::vector<std::string> names = {"eval", "bench", "rl", "rft"};
  const struct {
    std::vector<std::string> words;
    std::optional<std::string> said;
  } kTable[] = {
      {{"evl", "--task", "t"}, "no subcommand evl; did you mean eval?"},
      {{"bnech"}, "no subcommand bnech; did you mean bench?"},
      {{"evaluate"}, "no subcommand evaluate; did you mean eval?"},
      {{"rlf"}, "no subcommand rlf; did you mean rl?"},
      {{"judge"}, "no subcommand judge; --help lists them"},
      {{"x"}, "no subcommand x; --help lists them"},
      {{"eval", "evl"}, std::nullopt},
      {{"--help"}, std::nullopt},
      {{}, std::nullopt},
  };
  for (const auto& row : kTable) EXPECT_EQ(unknown_subcommand(row.words, names), row.said);
}

TEST(UnknownOption, SuggestsTheNearestOneIfOneIsNear) {
  const std::vector<std::string> options = {"task", "trials", "json", "no-shapes"};
  const struct {
    std::vector<std::string> words;
    std::optional<std::string> said;
  } kTable[] = {
      {{"eval", "--taks", "t"}, "did you mean --task in place of --taks?"},
      {{"eval", "--trails=3"}, "did you mean --trials in place of --trails?"},
      {{"eval", "--task", "--no-shape"}, "did you mean --no-shapes in place of --no-shape?"},
      {{"eval", "--frobnicate"}, std::nullopt},
      {{"eval", "--x", "--", "-t", "taks"}, std::nullopt},
      {{"eval", "--json"}, std::nullopt},
      {{}, std::nullopt},
  };
  for (const auto& row : kTable) EXPECT_EQ(unknown_option(row.words, options), row.said);
  EXPECT_EQ(unknown_option({"--taks"}, {}), std::nullopt);
}

}  // namespace
}  // namespace mc::cli
