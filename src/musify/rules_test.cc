// SPDX-License-Identifier: Apache-2.0
#include "musify/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

namespace mc::musify {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

Json valid() {
  return Json::parse(R"({
    "version": "musify/0",
    "suffixes": [[".cu", ".mu"]],
    "cpp_markers": ["__global__"],
    "architecture_flag": "--offload-arch=",
    "refused": [],
    "warned": [],
    "rules": [{"id": "a", "kind": "phrase", "language": "cpp", "pairs": [["x", "y"]]}],
    "remnants": {
      "cuda": {"contains": ["cuda"], "names": [], "headers": [], "allowed": []},
      "musa": {"contains": ["musa"], "names": [], "headers": [], "allowed": []}
    }
  })");
}

std::string problem_of(const Json& json) {
  const auto rules = parse_rules(json.dump(), Target::kMusa);
  return rules ? "" : rules.error().message;
}

TEST(Rules, OfTheProjectAreValid) {
  const std::filesystem::path folder = std::filesystem::path(MC_SOURCE_DIR) / "data/musify";
  EXPECT_TRUE(load_rules(folder, Target::kMusa));
  EXPECT_TRUE(load_rules(folder, Target::kCuda));
}

TEST(Rules, SwapTheirPairsIfTheTargetIsCuda) {
  const Rules rules = parse_rules(valid().dump(), Target::kCuda).value();
  EXPECT_EQ(rules.rules[0].pairs[0].from, "y");
  EXPECT_EQ(rules.rules[0].pairs[0].to, "x");
  EXPECT_EQ(rules.suffixes[0].from, ".mu");
}

TEST(Rules, NameAnUnknownMember) {
  Json json = valid();
  json["rules"][0]["pears"] = 1;
  EXPECT_THAT(problem_of(json), HasSubstr("rules[0] has an unknown member \"pears\""));
}

TEST(Rules, NameAnInvalidPair) {
  Json json = valid();
  json["rules"][0]["pairs"][0] = "x";
  EXPECT_THAT(problem_of(json), HasSubstr("rules[0].pairs is no pair"));
}

TEST(Rules, NameAnUnknownKind) {
  Json json = valid();
  json["rules"][0]["kind"] = "sentence";
  EXPECT_THAT(problem_of(json), HasSubstr("unknown value \"sentence\""));
}

TEST(Rules, AreRejectedIfTheyAreNotJson) {
  EXPECT_THAT(parse_rules("{", Target::kMusa).error().message, HasSubstr("not JSON"));
}

TEST(Pattern, MatchesAPrefixIfItEndsInAStar) {
  EXPECT_TRUE(matches("cuda/*", "cuda/barrier"));
  EXPECT_FALSE(matches("cuda/*", "cudax"));
  EXPECT_FALSE(matches("asm", "asmx"));
}

}  // namespace
}  // namespace mc::musify
