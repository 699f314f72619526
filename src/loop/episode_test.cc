// SPDX-License-Identifier: Apache-2.0
#include "loop/episode.h"

#include <cmath>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "core/file.h"
#include "loop/run_state.h"

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
  episode.turns.push_back({"x\n", false, 3, {"wrong", -0.25, 0.5, rl::Stage::kComparison, "No."}});
  episode.turns.push_back({"y", true, 1, {"infra", std::nullopt, 0, std::nullopt, ""}});
  return episode;
}

TEST(Episode, ComesBackFromItsLineToTheLastBit) {
  const auto again = episode_from_json(json_line(example()));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, example());
}

TEST(Episode, IsRefusedWithOtherThanOneLogProbabilityAToken) {
  Episode broken = example();
  broken.log_probs.pop_back();
  EXPECT_FALSE(episode_from_json(json_line(broken)));
  EXPECT_FALSE(episode_from_json("{}"));
}

TEST(Episode, ALineThatWasCutShortIsLeftOut) {
  const auto folder = TemporaryDirectory::create("episodes");
  ASSERT_TRUE(folder);
  const auto path = folder->path() / "episodes.jsonl";
  const std::string line = json_line(example());
  ASSERT_TRUE(write_file_atomically(path, line + line.substr(0, line.size() / 2)));
  const auto found = read_episodes(path, 4);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->size(), 1u);
  EXPECT_EQ(read_episodes(path, 3)->size(), 0u) << "of a step that is not wanted";
  EXPECT_EQ(read_episodes(folder->path() / "none", 3)->size(), 0u);
}

TEST(Episode, OnlyATurnThatPassedIsAPass) {
  Episode episode = example();
  EXPECT_FALSE(episode.passed());
  episode.turns.back().judgement.s = 1.0;
  EXPECT_TRUE(episode.passed());
}

TEST(Prompts, AReplayHasTheTaskAndTheFailedAnswerInOneMessage) {
  const Prompt prompt{{"t", "t", "code"}, {{"user", "Write it.\n"}}};
  const auto messages = replay_messages(prompt, "my code", "Result: wrong\n");
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].content,
            "Write it.\nAn answer that failed:\nmy code\nResult: wrong\nWrite the whole answer "
            "again.\n");
}

TEST(LoopState, ComesBackFromItsText) {
  LoopState state;
  state.optimizer_steps = 5;
  state.drifts.mean_abs = {0.1, 1e-9};
  state.retries.replays = {{"a", 1}};
  state.retries.items.push_back(
      {{"a", "a", "code", "wrong", rl::Stage::kForward, "No.", -0.5, 0.25, 4, 2}, 6});
  const auto again = loop_state_from_json(json_text(state));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->optimizer_steps, 5);
  EXPECT_EQ(again->drifts.mean_abs, state.drifts.mean_abs);
  EXPECT_EQ(again->retries, state.retries);
  EXPECT_FALSE(loop_state_from_json("{}"));
}

}  // namespace
}  // namespace mc::loop
