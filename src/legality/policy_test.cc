// SPDX-License-Identifier: Apache-2.0
#include "legality/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace mc::legality {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

const std::filesystem::path kPolicies = std::filesystem::path(MC_SOURCE_DIR) / "data/policy";

Json valid() {
  const Json none = Json::array();
  return {{"version", "test/1"},
          {"operators", {"empty"}},
          {"init_operators", {"cat"}},
          {"overloads", {"out"}},
          {"own_launches_min", 1},
          {"python",
           {{"unsupported_languages", none},
            {"forbidden_imports", {"ctypes"}},
            {"forbidden_names", none},
            {"forbidden_calls", none},
            {"allowed", none},
            {"parameter_containers", none}}},
          {"cpp", {{"rules", {{"cpp.a", {{"message", "m"}, {"calls", {"f"}}}}}}}},
          {"symbols", {{"rules", {{"link.a", {{"message", "m"}, {"patterns", {"f*"}}}}}}}},
          {"flags",
           {{"id", "native.flag"},
            {"message", "m"},
            {"valued", {"-D"}},
            {"nested", {{"-Xcompiler", "cxx"}}},
            {"lists",
             {{"cxx", {{"passed", {"-O2"}}, {"dropped", none}}},
              {"cuda", {{"passed", none}, {"dropped", {"-arch*"}}}},
              {"link", {{"passed", none}, {"dropped", none}}}}}}},
          {"kernels",
           {{"own_share_min", 0.5},
            {"foreign", {{"id", "run.a"}, {"message", "m"}}},
            {"share", {{"id", "run.b"}, {"message", "m"}}},
            {"foreign_owners", {"runtime"}},
            {"foreign_allowed", {"*Fill*"}}}}};
}

TEST(ParsePolicy, ReadsEveryMember) {
  const Result<Policy> policy = parse_policy(valid().dump());
  ASSERT_TRUE(policy.has_value());
  EXPECT_EQ(policy.value().version, "test/1");
  EXPECT_EQ(policy.value().name(), "test");
  EXPECT_TRUE(policy.value().operators.contains("empty"));
  EXPECT_TRUE(policy.value().overloads.contains("out"));
  EXPECT_EQ(policy.value().own_launches_min, 1);
  Json python = valid()["python"];
  python["operators"] = {"empty"};
  EXPECT_EQ(Json::parse(policy.value().python_json)["python"], python);
  ASSERT_EQ(policy.value().source_rules.size(), 1U);
  EXPECT_EQ(policy.value().source_rules[0].id, "cpp.a");
  EXPECT_TRUE(policy.value().source_rules[0].calls.contains("f"));
  ASSERT_EQ(policy.value().symbol_rules.size(), 1U);
  EXPECT_EQ(policy.value().symbol_rules[0].patterns[0], "f*");
  EXPECT_EQ(policy.value().flags.id, "native.flag");
  EXPECT_EQ(policy.value().flags.nested.at("-Xcompiler"), "cxx");
  EXPECT_EQ(policy.value().flags.lists.at("cuda").dropped[0], "-arch*");
  EXPECT_EQ(policy.value().kernels.own_share_min, 0.5);
  EXPECT_EQ(policy.value().kernels.share.id, "run.b");
  EXPECT_EQ(policy.value().kernels.foreign_allowed[0], "*Fill*");
}

struct Row {
  std::string pointer;  // The location of the wrong value.
  Json value;
  std::string message;
};

class Broken : public ::testing::TestWithParam<Row> {};

TEST_P(Broken, IsRefusedWithThePathOfTheMember) {
  Json json = valid();
  json[Json::json_pointer(GetParam().pointer)] = GetParam().value;
  const Result<Policy> policy = parse_policy(json.dump());
  ASSERT_FALSE(policy.has_value());
  EXPECT_EQ(policy.error().code, ErrorCode::kInvalidInput);
  EXPECT_THAT(policy.error().message, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, Broken,
    ::testing::Values(
        Row{"/version", "other", "policy.version \"other\" is no name/number"},
        Row{"/version", 1, "policy.version is missing or no text"},
        Row{"/extra", 1, "policy has an unknown member \"extra\""},
        Row{"/operators", "empty", "policy.operators is missing or no list"},
        Row{"/operators/0", 7, "policy.operators has an item that is no text"},
        Row{"/init_operators", nullptr, "policy.init_operators is missing or no list"},
        Row{"/overloads", nullptr, "policy.overloads is missing or no list"},
        Row{"/own_launches_min", -1, "policy.own_launches_min is not 0 or 1"},
        Row{"/python", nullptr, "python is missing or no object"},
        Row{"/python/forbidden_imports", nullptr, "python.forbidden_imports is missing"},
        Row{"/python/more", 1, "python has an unknown member \"more\""},
        Row{"/cpp/rules", 1, "cpp.rules is missing or no object"},
        Row{"/cpp/rules/cpp.a", nullptr, "cpp.rules.cpp.a is missing or no object"},
        Row{"/cpp/rules/cpp.a/message", "", "cpp.rules.cpp.a.message is missing"},
        Row{"/cpp/rules/cpp.a/callz", 1, "cpp.rules.cpp.a has an unknown member \"callz\""},
        Row{"/cpp/rules/cpp.a/calls", "f", "cpp.rules.cpp.a.calls is missing or no list"},
        Row{"/symbols/rules/link.a/patterns", nullptr, "symbols.rules.link.a.patterns is missing"},
        Row{"/flags", nullptr, "flags is missing or no object"},
        Row{"/flags/id", nullptr, "flags.id is missing"},
        Row{"/flags/allowed", 1, "flags has an unknown member \"allowed\""},
        Row{"/flags/nested/-Xptxas", "ptxas", "flags.nested.-Xptxas names no list"},
        Row{"/flags/lists", nullptr, "flags.lists.cxx is missing"},
        Row{"/flags/lists/cxx/passed", 1, "flags.lists.cxx.passed is missing or no list"},
        Row{"/kernels", nullptr, "kernels is missing or no object"},
        Row{"/kernels/own_share_min", 2, "kernels.own_share_min is not between 0 and 1"},
        Row{"/flags/lists/link", nullptr, "flags.lists.link is missing or no object"}));

TEST(ParsePolicy, RejectsInvalidJson) {
  EXPECT_THAT(parse_policy("{").error().message, HasSubstr("not JSON"));
  EXPECT_THAT(parse_policy("[]").error().message, HasSubstr("policy is missing or no object"));
}

TEST(ParsePolicy, MergesAPatch) {
  const Result<Policy> policy = parse_policy(
      valid().dump(), R"({"extends": "a", "version": "b/7", "cpp": {"rules": {"cpp.a": null}}})");
  ASSERT_TRUE(policy.has_value());
  EXPECT_EQ(policy.value().name(), "b");
  EXPECT_TRUE(policy.value().source_rules.empty());
  EXPECT_EQ(policy.value().symbol_rules.size(), 1U);
}

TEST(LoadPolicy, ListsTheKnownPoliciesForAnUnknownName) {
  for (const char* name : {"kernelbensh", "../policy/musacoder", ""}) {
    const Result<Policy> policy = load_policy(kPolicies, name);
    ASSERT_FALSE(policy.has_value());
    EXPECT_EQ(policy.error().code, ErrorCode::kInvalidInput);
    EXPECT_THAT(policy.error().message, HasSubstr(std::string("policy '") + name +
                                                  "' is not known: use kernelbench or musacoder"));
  }
}

TEST(MusacoderPolicy, AllowsAllocationsAndViewsOnly) {
  const Policy policy = load_policy(kPolicies, "musacoder").value();
  EXPECT_EQ(policy.name(), "musacoder");
  for (const char* name : {"empty", "view", "_cast_Float", "_to_copy", "zeros_like", "t"}) {
    EXPECT_TRUE(policy.operators.contains(name)) << name;
  }
  for (const char* name : {"add", "mm", "relu", "sum", "cat", "*"}) {
    EXPECT_FALSE(policy.operators.contains(name)) << name;
  }
}

TEST(MusacoderPolicy, ForbidsNoAllowedOperator) {
  const Policy policy = load_policy(kPolicies, "musacoder").value();
  for (const SourceRule& rule : policy.source_rules) {
    for (const std::string& name : rule.operators) {
      EXPECT_FALSE(policy.operators.contains(name)) << name;
    }
  }
}

TEST(KernelbenchPolicy, AllowsOperatorsAndLibrariesAndSharesTheOtherRules) {
  const Policy musacoder = load_policy(kPolicies, "musacoder").value();
  const Policy policy = load_policy(kPolicies, "kernelbench").value();
  EXPECT_EQ(policy.name(), "kernelbench");
  EXPECT_TRUE(policy.operators.contains("*"));
  EXPECT_EQ(policy.own_launches_min, 1);
  EXPECT_EQ(policy.kernels.own_share_min, 0);
  EXPECT_EQ(policy.source_rules.size() + 3, musacoder.source_rules.size());
  EXPECT_EQ(policy.symbol_rules.size() + 2, musacoder.symbol_rules.size());
}

}  // namespace
}  // namespace mc::legality
