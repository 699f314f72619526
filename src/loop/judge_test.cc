// SPDX-License-Identifier: Apache-2.0
#include "loop/judge.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "core/file.h"
#include "core/hash.h"
#include "store/store.h"
#include "task/verdict_json.h"

namespace mc::loop {
namespace {

std::string reply_with(task::Outcome outcome) {
  task::Verdict verdict;
  verdict.outcome = std::move(outcome);
  return R"({"id": "k:0", "feedback": "No.\n", "verdict": )" +
         task::to_json(verdict, task::Indent::kCompact) + "}";
}

TEST(ParseReply, ScoresAFailureAndNamesItsStage) {
  const auto got =
      parse_reply(reply_with(task::Wrong{.q = 0.5, .specialised = false, .trials = {}}), {});
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(*got, (Judgement{"wrong", -0.25, 0.5, {}, rl::Stage::kComparison, "No.\n"}));
}

TEST(ParseReply, ScoresAPassByItsRoundedSpeedUp) {
  task::Passed passed;
  EXPECT_EQ(parse_reply(reply_with(passed), {})->s, 1.0);
  passed.performance.emplace();
  passed.performance->speedup_eager.low = 1.04;
  EXPECT_EQ(parse_reply(reply_with(passed), {})->s, 1.0) << "within the dead zone";
  passed.performance->speedup_eager.low = 2.01;
  EXPECT_EQ(parse_reply(reply_with(passed), {})->s, 1.25);
  EXPECT_EQ(parse_reply(reply_with(passed), {})->nu, 2.01);
}

TEST(ParseReply, InfraAndUnsupportedHaveNoScore) {
  EXPECT_FALSE(parse_reply(reply_with(task::Infra{"disk"}), {})->s);
  EXPECT_FALSE(parse_reply(reply_with(task::Unsupported{}), {})->s);
}

TEST(ParseReply, RejectsALineThatIsNotAVerdict) {
  EXPECT_EQ(parse_reply(R"({"id": "a", "error": "no task"})", {}).error().code,
            ErrorCode::kInvalidInput);
  EXPECT_EQ(parse_reply(R"({"id": "a", "error": "lost", "kind": "infra"})", {})->outcome, "infra");
  EXPECT_EQ(parse_reply("nonsense", {}).error().code, ErrorCode::kProtocol);
  EXPECT_EQ(parse_reply(R"({"id": "a", "verdict": {}})", {}).error().code, ErrorCode::kProtocol);
}

TEST(Judge, AVerifierThatEndsOrRepliesToAnUnknownIdIsAnError) {
  const task::Task task{"t", "t", "code"};
  auto ends = Judge::start({"false"}, {});
  ASSERT_TRUE(ends);
  EXPECT_EQ((*ends)->wait((*ends)->submit(task, "a")).error().code, ErrorCode::kUnavailable);
  auto talks = Judge::start({"echo", R"({"id": "other:0", "error": ""})"}, {});
  ASSERT_TRUE(talks);
  EXPECT_FALSE((*talks)->wait((*talks)->submit(task, "a")));
  EXPECT_FALSE(Judge::start({"/no/such/program"}, {}));
}

TEST(Judge, RequestsAVerdictInTheDialectOfTheRow) {
  const task::Task task{"t", "t", "code"};
  const auto folder = TemporaryDirectory::create("judge");
  const std::string path = (folder->path() / "asked").string();
  auto judge = Judge::start({"sh", "-c", "head -n 2 > \"$0\"", path}, {});
  ASSERT_TRUE(judge);
  const std::string cuda = (*judge)->submit(task, "a");
  const std::string musa = (*judge)->submit(task, "a", task::Dialect::kMusa);
  EXPECT_NE(cuda, musa);
  EXPECT_FALSE((*judge)->wait(musa));  // The verifier ended without a reply.
  const auto asked = read_file(path, 1 << 20);
  ASSERT_TRUE(asked);
  const size_t second = asked->find('\n') + 1;
  EXPECT_EQ(asked->substr(0, second).find("options"), std::string::npos);
  EXPECT_NE(asked->find(R"("options":{"dialect":"musa"})", second), std::string::npos);
}

TEST(Judge, AStoredVerdictIsNotRequestedAgain) {
  const task::Task task{"t", "t", "code"};
  const auto folder = TemporaryDirectory::create("judge");
  auto opened = store::open_run(folder->path(), {.name = "rl", .kind = "rl", .settings = "{}"});
  ASSERT_TRUE(opened) << opened.error().message;
  std::string reply = reply_with(task::Illegal{});
  reply.replace(reply.find("k:0"), 3, content_hash({task.code, "a"}));
  const auto outcome_by = [&](const std::string& script) {
    auto judge = Judge::start({"sh", "-c", script, "sh", reply}, {}, &opened->run);
    const auto judgement = (*judge)->wait((*judge)->submit(task, "a"));
    return judgement ? judgement->outcome : judgement.error().message;
  };
  EXPECT_NE(outcome_by("exit"), "illegal");
  EXPECT_EQ(outcome_by("read question; printf '%s\\n' \"$1\""), "illegal");
  EXPECT_EQ(outcome_by("exit"), "illegal");
}

}  // namespace
}  // namespace mc::loop
