// SPDX-License-Identifier: Apache-2.0
#include "worker/protocol.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace mc::worker {
namespace {

using Json = nlohmann::json;

const Json kRan = {{"ok", true},
                   {"aten", {{"aten::empty", 2}}},
                   {"sticky", ""},
                   {"outputs", {{"t", "list"}}},
                   {"buffers", {{{"name", "w"}, {"tree", nullptr}}}}};

TEST(Protocol, WritesEachMemberOfAQuestionAndItsOperation) {
  const ContestantLoadQuestion load{.source = "x",
                                    .artifacts = {{"k", {"/a/0/m.so", "m"}}},
                                    .policy = {"musacoder", {"empty"}, {}},
                                    .schedule_seed = UINT64_MAX};
  const Json expected = {
      {"op", "load"},
      {"source", "x"},
      {"artifacts", {{"k", {{"path", "/a/0/m.so"}, {"module", "m"}}}}},
      {"policy",
       {{"name", "musacoder"}, {"device_allowed", {"empty"}}, {"host_allowed", Json::array()}}},
      {"schedule_seed", UINT64_MAX}};
  EXPECT_EQ(Json::parse(load.to_json()), expected);
}

TEST(Protocol, ReadsAnAnswer) {
  const auto ran = ContestantRunAnswer::from_json(kRan.dump());
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(ran->aten.at("aten::empty"), 2);
  EXPECT_FALSE(ran->launches);
  EXPECT_EQ(ran->outputs.json, R"({"t":"list"})");
  EXPECT_EQ(ran->buffers.at(0).name, "w");
}

TEST(Protocol, RefusesAnAnswerWithOneMemberMore) {
  Json more = kRan;
  more["passed"] = true;
  EXPECT_FALSE(ContestantRunAnswer::from_json(more.dump()));
  more = kRan;
  more["buffers"][0]["seed"] = 1;
  EXPECT_FALSE(ContestantRunAnswer::from_json(more.dump()));
}

TEST(Protocol, RefusesAnAnswerWithOneMemberLess) {
  for (const auto& [name, value] : kRan.items()) {
    if (name == "ok") continue;  // Looked at before (envelope.h).
    Json less = kRan;
    less.erase(name);
    EXPECT_FALSE(ContestantRunAnswer::from_json(less.dump())) << name;
  }
}

TEST(Protocol, RefusesMembersOfAnotherType) {
  for (const auto& [name, value] : kRan.items()) {
    if (name == "ok" || name == "outputs") continue;  // A tree is any value.
    for (const Json& wrong : {Json(nullptr), Json(1.5), Json(true), Json({{"a", "b"}})}) {
      Json other = kRan;
      other[name] = wrong;
      EXPECT_FALSE(ContestantRunAnswer::from_json(other.dump())) << name << wrong;
    }
  }
}

TEST(Protocol, RefusesNumbersThatDoNotFit) {
  Json large = kRan;
  large["launches"] = UINT64_MAX;
  EXPECT_FALSE(ContestantRunAnswer::from_json(large.dump()));
}

TEST(Protocol, RefusesWhatIsNoMessage) {
  for (const std::string text : {"", "[]", "7", "{", "\xff"}) {
    EXPECT_FALSE(ContestantRunAnswer::from_json(text)) << text;
  }
  EXPECT_FALSE(ContestantRunAnswer::from_json(std::string(1000, '[')));
}

}  // namespace
}  // namespace mc::worker
