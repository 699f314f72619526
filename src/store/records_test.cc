// SPDX-License-Identifier: Apache-2.0
#include "store/records.h"

#include <string>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "task/testing/verdict_generator.h"
#include "task/verdict_json.h"

namespace mc::store {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

TEST(AnswerKey, NamesTheTurnOnlyAfterTheFirst) {
  EXPECT_EQ(to_string(AnswerKey{"kernelbench:1/19", 3, 0}), "kernelbench:1/19#3");
  EXPECT_EQ(to_string(AnswerKey{"kernelbench:1/19", 3, 1}), "kernelbench:1/19#3.1");
}

TEST(AnswerLine, ReadsBackWhatItWrote) {
  const Answer whole{.key = {"a \"quoted\" id", 7, 2},
                     .completion = std::string("NUL \0 and \n and \u2028", 19),
                     .reasoning = "so",
                     .finish = "length",
                     .num_tokens = 9,
                     .reasoning_tokens = 4,
                     .prompt_tokens = 5,
                     .seconds = 0.125};
  for (const Answer& answer : {whole, Answer{.key = {"a", 0, 0}, .completion = ""}}) {
    const std::string line = json_line(answer);
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    const auto again = answer_from_json(line);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(*again, answer);
  }
}

TEST(AnswerLine, LeavesOutEmptyMembers) {
  const Json json = Json::parse(json_line(Answer{.key = {"a", 0, 0}, .completion = "x"}));
  EXPECT_EQ(json, Json::parse(R"({"id": "a", "sample": 0, "completion": "x", "num_tokens": 0,
                                 "finish": ""})"));
}

TEST(AnswerLine, ReplacesBytesThatAreNotUtf8) {
  const auto again = answer_from_json(json_line(Answer{.key = {"a", 0, 0}, .completion = "\xff!"}));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->completion, "\ufffd!");
}

TEST(AnswerLine, NamesTheInvalidMember) {
  const struct {
    std::string line;
    std::string words;
  } kTable[] = {
      {"[]", "not a JSON object"},
      {"{\"id\": \"a\"", "not a JSON object"},
      {R"({"id": "a", "completion": "\ud800"})", "not a JSON object"},
      {R"({"completion": "x"})", "\"id\" or \"task\" is missing"},
      {R"({"id": 3, "completion": "x"})", "\"id\" or \"task\" is missing"},
      {R"({"id": "a", "completion": "x"})", "\"sample\" is missing"},
      {R"({"id": "a", "sample": 0})", "\"completion\" or \"response\" is missing"},
      {R"({"id": "a", "completion": "x", "sample": 0, "turn": -1})", "\"turn\" is not a number"},
      {R"({"id": "a", "completion": "x", "sample": 0, "turn": 0.5})", "\"turn\" is not a number"},
      {R"({"id": "a", "completion": "x", "sample": 1000000001})", "\"sample\" is not a number"},
      {R"({"id": "a", "completion": "x", "sample": 0, "num_tokens": null})",
       "\"num_tokens\" is not a number"},
  };
  for (const auto& row : kTable) {
    const auto answer = answer_from_json(row.line);
    ASSERT_FALSE(answer) << row.line;
    EXPECT_EQ(answer.error().code, ErrorCode::kInvalidInput);
    EXPECT_THAT(answer.error().message, HasSubstr(row.words));
  }
}

TEST(JudgementLine, ContainsTheVerdictInItsOwnFormat) {
  for (size_t i = 0; i < std::variant_size_v<task::Outcome>; ++i) {
    const Judgement one{.key = {"a", 1, 2},
                        .reward = i == 0 ? std::optional<double>() : -0.5,
                        .seconds = 0.25,
                        .feedback = "no\nbytes \xff",
                        .verdict = task::generate_verdict(1, i)};
    const std::string line = json_line(one);
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    const Json json = Json::parse(line);
    EXPECT_EQ(json["id"], "a");
    EXPECT_EQ(json["sample"], 1);
    EXPECT_EQ(json["turn"], 2);
    EXPECT_EQ(json["seconds"], 0.25);
    EXPECT_EQ(json["feedback"], "no\nbytes \ufffd");
    EXPECT_EQ(json["reward"], i == 0 ? Json() : Json(-0.5));
    const auto verdict = task::verdict_from_json(json["verdict"].dump());
    ASSERT_TRUE(verdict);
    EXPECT_EQ(*verdict, one.verdict);
  }
}

}  // namespace
}  // namespace mc::store
