// SPDX-License-Identifier: Apache-2.0
#include "forge/unit_tests.h"

#include <cmath>
#include <map>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "forge/library.h"
#include "forge/sample_graph.h"

namespace mc::forge {
namespace {

using testing::ElementsAre;

// The unit tests of the first task that can be drawn with this operator alone.
std::vector<nlohmann::json> tests_of(const char* family, const char* op,
                                     Type type = Type::kFloat32) {
  const auto library = load_library(MC_SOURCE_DIR "/data/forge");
  EXPECT_TRUE(library) << library.error().message;
  GraphOptions options;
  options.depth = 1;
  options.families = {family};
  options.operators = {op};
  options.types = {type};
  for (uint64_t number = 0; number < 20; ++number) {
    const auto graph = sample_graph(library->operators, 1, number, options);
    if (!graph) continue;
    std::vector<nlohmann::json> tests;
    for (const std::string& test : unit_tests_of(*graph))
      tests.push_back(nlohmann::json::parse(test));
    return tests;
  }
  return {};
}

std::vector<std::string> kinds_of(const std::vector<nlohmann::json>& tests) {
  std::vector<std::string> kinds;
  for (const nlohmann::json& test : tests) kinds.push_back(test["values"]);
  return kinds;
}

TEST(UnitTests, HaveSeveralKindsOfValues) {
  const auto tests = tests_of("elementwise", "relu");
  ASSERT_THAT(kinds_of(tests), ElementsAre("drawn", "zeros", "negative", "one_large"));
  for (const nlohmann::json& test : tests) {
    const nlohmann::json& given = test["inputs"][0]["values"];
    const nlohmann::json& got = test["outputs"][0]["values"];
    ASSERT_EQ(given.size(), got.size());
    for (size_t i = 0; i < given.size(); ++i) {
      EXPECT_EQ(got[i].get<double>(), std::max(given[i].get<double>(), 0.0));
    }
  }
  EXPECT_EQ(tests[1]["inputs"][0]["values"][0], 0.0);
  EXPECT_EQ(tests[3]["inputs"][0]["values"][0], 64.0);
}

TEST(UnitTests, UseOnlyExactlyRepresentableValues) {
  for (const Type type : {Type::kFloat32, Type::kFloat16, Type::kBfloat16}) {
    for (const nlohmann::json& test : tests_of("elementwise", "mul", type)) {
      for (const nlohmann::json& input : test["inputs"]) {
        for (const double v : input["values"]) EXPECT_EQ(v * 64, std::round(v * 64));
      }
      EXPECT_EQ(test["tolerance"], type == Type::kFloat32 ? 1e-4 : 1e-2);
    }
  }
}

TEST(UnitTests, LeaveOutProbesOutsideTheDomain) {
  const auto kinds = kinds_of(tests_of("elementwise", "rsqrt"));
  EXPECT_FALSE(kinds.empty());
  EXPECT_THAT(kinds, testing::Not(testing::Contains("negative")));
}

}  // namespace
}  // namespace mc::forge
