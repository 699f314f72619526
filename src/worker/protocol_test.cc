// SPDX-License-Identifier: Apache-2.0
#include "worker/protocol.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <functional>
#include <random>
#include <string>

#include "worker/fakes/protocol_oracle.h"

namespace mc::worker {
namespace {

using Json = nlohmann::json;

const Json kRan = {{"ok", true},
                   {"aten", {{"aten::empty", 2}}},
                   {"moved_percent", 0},
                   {"sticky", ""},
                   {"outputs", {{"t", "list"}}},
                   {"buffers", {{{"name", "w"}, {"tree", nullptr}}}}};

TEST(Protocol, WritesEachMemberOfAQuestionAndItsOperation) {
  const CandidateLoadRequest load{.source = "x",
                                  .artifacts = {{"k", {"/a/0/m.so", "m"}}},
                                  .policy = {"musacoder", {"empty"}, {}, {"cat"}},
                                  .schedule_seed = UINT64_MAX};
  const Json expected = {{"op", "load"},
                         {"source", "x"},
                         {"artifacts", {{"k", {{"path", "/a/0/m.so"}, {"module", "m"}}}}},
                         {"policy",
                          {{"name", "musacoder"},
                           {"device_allowed", {"empty"}},
                           {"host_allowed", Json::array()},
                           {"init_allowed", {"cat"}}}},
                         {"schedule_seed", UINT64_MAX}};
  EXPECT_EQ(Json::parse(load.to_json()), expected);
}

TEST(Protocol, ReadsAnAnswer) {
  const auto ran = CandidateRunResponse::from_json(kRan.dump());
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(ran->aten.at("aten::empty"), 2);
  EXPECT_FALSE(ran->launches);
  EXPECT_EQ(ran->outputs.json, R"({"t":"list"})");
  EXPECT_EQ(ran->buffers.at(0).name, "w");
}

TEST(Protocol, RefusesAnAnswerWithOneMemberMore) {
  Json more = kRan;
  more["passed"] = true;
  EXPECT_FALSE(CandidateRunResponse::from_json(more.dump()));
  more = kRan;
  more["buffers"][0]["seed"] = 1;
  EXPECT_FALSE(CandidateRunResponse::from_json(more.dump()));
}

TEST(Protocol, RefusesAnAnswerWithOneMemberLess) {
  for (const auto& [name, value] : kRan.items()) {
    if (name == "ok") continue;  // The envelope is checked separately (envelope.h).
    Json less = kRan;
    less.erase(name);
    EXPECT_FALSE(CandidateRunResponse::from_json(less.dump())) << name;
  }
}

TEST(Protocol, RefusesMembersOfAnotherType) {
  for (const auto& [name, value] : kRan.items()) {
    if (name == "ok" || name == "outputs") continue;  // A tree is any value.
    for (const Json& wrong : {Json(nullptr), Json(1.5), Json(true), Json({{"a", "b"}})}) {
      Json other = kRan;
      other[name] = wrong;
      EXPECT_FALSE(CandidateRunResponse::from_json(other.dump())) << name << wrong;
    }
  }
}

TEST(Protocol, RefusesNumbersThatDoNotFit) {
  Json large = kRan;
  large["launches"] = UINT64_MAX;
  EXPECT_FALSE(CandidateRunResponse::from_json(large.dump()));
}

TEST(Protocol, RefusesWhatIsNoMessage) {
  for (const std::string text : {"", "[]", "7", "{", "\xff", "null", "{}"}) {
    EXPECT_FALSE(CandidateRunResponse::from_json(text)) << text;
  }
  EXPECT_FALSE(CandidateRunResponse::from_json(std::string(1000, '[')));
}

TEST(Protocol, WritesNonFiniteNumbersAsText) {
  for (const double value : {double{INFINITY}, -double{INFINITY}, 1e300, -0.25}) {
    const auto response =
        JudgeTimeSpeedResponse::from_json(JudgeTimeSpeedResponse{1, value, 1}.to_json());
    ASSERT_TRUE(response);
    EXPECT_EQ(response->fp32_tflops, value);
  }
  const auto response =
      JudgeTimeSpeedResponse::from_json(JudgeTimeSpeedResponse{1, NAN, 1}.to_json());
  ASSERT_TRUE(response);
  EXPECT_TRUE(std::isnan(response->fp32_tflops));
  for (const char* wrong : {"\"Infinity\"", "\"\"", "true", "null", "[1]"}) {
    const std::string text =
        std::string(R"({"ok":true,"bandwidth_gbs":1,"half_tflops":1,"fp32_tflops":)") + wrong + "}";
    EXPECT_FALSE(JudgeTimeSpeedResponse::from_json(text)) << wrong;
  }
}

TEST(Protocol, RequiresTheOperationOfARequestAndTheOkOfAResponse) {
  const std::string begin = JudgeBeginRequest{7}.to_json();
  ASSERT_TRUE(JudgeBeginRequest::from_json(begin));
  EXPECT_FALSE(JudgeTimePlanRequest::from_json(begin));
  EXPECT_FALSE(JudgeRestResponse::from_json(R"({"ok": false})"));
  EXPECT_FALSE(JudgeRestResponse::from_json("{}"));
}

// Calls `visit` for every object in `json`.
void for_each_object(Json& json, const std::function<void(Json&)>& visit) {
  if (json.is_object()) visit(json);
  for (Json& inner : json) {
    // The definition does not describe the inside of a tree.
    if (inner.is_structured() && inner.dump() != example<Tree>().json) {
      for_each_object(inner, visit);
    }
  }
}

TEST(EveryMessage, IsReadAsItWasWritten) {
  for_each_message([]<typename Message>() {
    EXPECT_TRUE(reads<Message>(example<Message>().to_json())) << example<Message>().to_json();
    EXPECT_TRUE(reads<Message>(Message().to_json())) << Message().to_json();
  });
}

TEST(EveryMessage, WithOneMemberMoreIsRefusedAtAnyDepth) {
  for_each_message([]<typename Message>() {
    Json message = Json::parse(example<Message>().to_json());
    for_each_object(message, [&](Json& object) {
      if (object.contains("key")) return;  // A map, whose keys are free.
      object["trial_seed"] = 1;
      EXPECT_FALSE(reads<Message>(message.dump())) << message;
      object.erase("trial_seed");
    });
    EXPECT_TRUE(reads<Message>(message.dump()));
  });
}

TEST(EveryMessage, WithOneMemberLessIsReadOnlyWhereThatIsOptional) {
  for_each_message([]<typename Message>() {
    Message example_of_it = example<Message>();
    Message::for_each_member(example_of_it, [&]<typename Member>(const char* name, Member&) {
      Json message = Json::parse(example_of_it.to_json());
      message.erase(name);
      const bool may_miss = requires(Member& member) { member.has_value(); };
      EXPECT_EQ(reads<Message>(message.dump()), may_miss) << name;
    });
  });
}

TEST(EveryMessage, IsReadOrRejectedAfterAnyEdit) {
  std::mt19937 random(20);
  for_each_message([&]<typename Message>() {
    const std::string text = example<Message>().to_json();
    int num_refused = 0;
    for (int i = 0; i < 300; ++i) {
      std::string edits(3 * (1 + random() % 3), ' ');
      for (char& byte : edits) byte = static_cast<char>(random());
      num_refused += reads<Message>(edited(text, edits)) ? 0 : 1;
    }
    EXPECT_GT(num_refused, 100) << text;
  });
}

}  // namespace
}  // namespace mc::worker
