// SPDX-License-Identifier: Apache-2.0
#include "loop/episode.h"

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/file.h"

namespace mc::loop {
namespace {

Episode example() {
  Episode episode{.step = 3,
                  .group = 1,
                  .sample = 2,
                  .task = "t",
                  .is_replay = true,
                  .prompt = {1, 2},
                  .tokens = {7, 8, 2},
                  .log_probs = {-0.1, -1e-17, -std::exp(1.0)},
                  .turns = {}};
  Turn wrong{"x\n", false, 3, {"wrong", -0.25, 0.5, {}, rl::Stage::kComparison, "No."}};
  Turn infra{"y", true, 1, {"infra", std::nullopt, 0, {}, std::nullopt, ""}};
  episode.turns = {wrong, infra};
  return episode;
}

TEST(Episode, IsReadFromItsLineUnchanged) {
  const auto again = episode_from_json(json_line(example()));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, example());
  Episode fast = example();
  fast.turns.push_back({"z", true, 1, {"pass", 1.25, 1, 2.01, std::nullopt, ""}});
  EXPECT_EQ(*episode_from_json(json_line(fast)), fast);
}

TEST(Episode, IsRejectedWithoutOneLogProbabilityForEachToken) {
  Episode broken = example();
  broken.log_probs.pop_back();
  EXPECT_FALSE(episode_from_json(json_line(broken)));
  EXPECT_FALSE(episode_from_json("{}"));
}

TEST(Episode, SeveralAreReadFromTheirLines) {
  const std::vector<Episode> all(3, example());
  EXPECT_EQ(*episodes_from_lines(json_lines(all)), all);
  EXPECT_TRUE(episodes_from_lines("")->empty());
  const auto broken = episodes_from_lines(json_line(example()) + "{}\n");
  ASSERT_FALSE(broken);
  EXPECT_TRUE(broken.error().message.starts_with("line 2: ")) << broken.error().message;
}

TEST(Episode, OnlyATurnThatPassedIsAPass) {
  Episode episode = example();
  EXPECT_FALSE(episode.passed());
  episode.turns.back().judgement.s = 1.0;
  EXPECT_TRUE(episode.passed());
}

std::string prompts_error(const std::string& dialect) {
  const auto folder = TemporaryDirectory::create("prompts");
  const auto path = folder->path() / "rl.jsonl";
  const std::string line = R"({"id": "t", "label": "code", "prompt": [{"role": "user", )"
                           R"("content": "Write it."}])" +
                           dialect + "}\n";
  EXPECT_TRUE(write_file_atomically(path, line));
  const auto prompts = read_prompts(path);
  if (!prompts) return prompts.error().message;
  return prompts->front().dialect ? to_string(*prompts->front().dialect) : "";
}

TEST(Prompts, ARowMayNameItsDialect) {
  EXPECT_EQ(prompts_error(""), "");
  EXPECT_EQ(prompts_error(R"(, "dialect": "musa")"), "musa");
  EXPECT_EQ(prompts_error(R"(, "extra_info": {"dialect": "cuda"})"), "cuda");
  EXPECT_TRUE(
      prompts_error(R"(, "dialect": "hip")").ends_with("expected cuda or musa, got \"hip\""));
}

TEST(Prompts, ARepairTurnContainsTheAnswerWithoutItsReasoning) {
  std::vector<model::Message> messages{{"user", "Write it.\n"}};
  Turn turn;
  turn.answer = "<think>\nHm.\n</think>\n\nmy code";
  turn.judgement.feedback = "Result: wrong\n";
  add_repair_turn(turn, messages);
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[1].role, "assistant");
  EXPECT_EQ(messages[1].content, "my code");
  EXPECT_EQ(messages[2].content, "Result: wrong\nWrite the whole answer again.\n");
}

TEST(Prompts, AReplayHasTheTaskAndTheFailedAnswerInOneMessage) {
  const Prompt prompt{{"t", "t", "code"}, {{"user", "Write it.\n"}}};
  const auto messages = replay_messages(prompt, "my code", "Result: wrong\n");
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].content,
            "Write it.\nAn answer that failed:\nmy code\nResult: wrong\nWrite the whole answer "
            "again.\n");
}

}  // namespace
}  // namespace mc::loop
