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

const std::filesystem::path kDefault = std::filesystem::path(MC_SOURCE_DIR) / "policy/default.json";

Json valid() {
  const Json none = Json::array();
  return {
      {"version", "musacoder-policy/1-test"},
      {"aten_allowed", {"empty"}},
      {"python",
       {{"forbidden_imports", {"ctypes"}},
        {"forbidden_names", none},
        {"forbidden_calls", none},
        {"allowed_torch_calls", none},
        {"parameter_containers", none}}},
      {"cpp", {{"rules", {{{"id", "cpp.a"}, {"message", "m"}, {"calls", {"f"}}}}}}},
      {"symbols",
       {{"rules", {{{"id", "link.a"}, {"message", "m"}, {"patterns", {"f*"}}, {"except", none}}}}}},
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
        {"late", {{"id", "run.c"}, {"message", "m"}}},
        {"foreign_allowed", {"*Fill*"}}}}};
}

TEST(ParsePolicy, ReadsEveryMember) {
  const Result<Policy> policy = parse_policy(valid().dump());
  ASSERT_TRUE(policy.has_value());
  EXPECT_EQ(policy.value().version, "musacoder-policy/1-test");
  EXPECT_TRUE(policy.value().aten_allowed.contains("aten::empty"));
  EXPECT_EQ(Json::parse(policy.value().python_json)["python"], valid()["python"]);
  ASSERT_EQ(policy.value().source_rules.size(), 1U);
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
  std::string pointer;  // Where a wrong value is put.
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
        Row{"/version", "other/2", "policy.version \"other/2\" does not start"},
        Row{"/version", 1, "policy.version is missing or no text"},
        Row{"/extra", 1, "policy has an unknown member \"extra\""},
        Row{"/aten_allowed", "empty", "policy.aten_allowed is missing or no list"},
        Row{"/aten_allowed/0", 7, "policy.aten_allowed has an item that is no text"},
        Row{"/python", nullptr, "python is missing or no object"},
        Row{"/python/forbidden_imports", nullptr, "python.forbidden_imports is missing"},
        Row{"/python/more", 1, "python has an unknown member \"more\""},
        Row{"/cpp/rules", 1, "cpp.rules is missing or no list"},
        Row{"/cpp/rules/0/id", "", "cpp.rules[0].id is missing"},
        Row{"/cpp/rules/0/callz", 1, "cpp.rules[0] has an unknown member \"callz\""},
        Row{"/cpp/rules/0/calls", "f", "cpp.rules[0].calls is missing or no list"},
        Row{"/symbols/rules/0/patterns", nullptr, "symbols.rules[0].patterns is missing"},
        Row{"/flags", nullptr, "flags is missing or no object"},
        Row{"/flags/id", nullptr, "flags.id is missing"},
        Row{"/flags/allowed", 1, "flags has an unknown member \"allowed\""},
        Row{"/flags/nested/-Xptxas", "ptxas", "flags.nested.-Xptxas names no list"},
        Row{"/flags/lists", nullptr, "flags.lists.cxx is missing"},
        Row{"/flags/lists/cxx/passed", 1, "flags.lists.cxx.passed is missing or no list"},
        Row{"/kernels", nullptr, "kernels is missing or no object"},
        Row{"/kernels/own_share_min", 2, "kernels.own_share_min is not between 0 and 1"},
        Row{"/kernels/late/id", nullptr, "kernels.late.id is missing"},
        Row{"/flags/lists/link", nullptr, "flags.lists.link is missing or no object"}));

TEST(ParsePolicy, RefusesWhatIsNoJson) {
  EXPECT_THAT(parse_policy("{").error().message, HasSubstr("not JSON"));
  EXPECT_THAT(parse_policy("[]").error().message, HasSubstr("policy is missing or no object"));
}

TEST(LoadPolicy, NamesTheFile) {
  const Result<Policy> policy = load_policy("/nonexistent/policy.json");
  ASSERT_FALSE(policy.has_value());
  EXPECT_THAT(policy.error().message, HasSubstr("/nonexistent/policy.json"));
}

TEST(DefaultPolicy, LoadsAndIsTheCurrentVersion) {
  const Result<Policy> policy = load_policy(kDefault);
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  EXPECT_EQ(policy.value().version, kPolicyFormat);
}

TEST(DefaultPolicy, AllowsAllocationsAndViewsOnly) {
  const Policy policy = load_policy(kDefault).value();
  for (const char* name : {"aten::empty", "aten::view", "aten::_cast_Float", "aten::_to_copy"}) {
    EXPECT_TRUE(policy.aten_allowed.contains(name)) << name;
  }
  for (const char* name : {"aten::add", "aten::mm", "aten::relu", "aten::sum", "aten::cat"}) {
    EXPECT_FALSE(policy.aten_allowed.contains(name)) << name;
  }
}

TEST(DefaultPolicy, ForbidsNoOperatorThatMayRun) {
  const Policy policy = load_policy(kDefault).value();
  for (const SourceRule& rule : policy.source_rules) {
    for (const std::string& name : rule.operators) {
      EXPECT_FALSE(policy.aten_allowed.contains("aten::" + name)) << name;
    }
  }
}

}  // namespace
}  // namespace mc::legality
