// SPDX-License-Identifier: Apache-2.0
#include "loop/prompt_queue.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace mc::loop {
namespace {

PromptQueue make_queue(double replays = 0.5) {
  std::vector<Prompt> prompts;
  for (int i = 0; i < 7; ++i) {
    const std::string id = "t" + std::to_string(i);
    prompts.push_back({{id, id, "code"}, {{"user", "task " + id + "\n"}}});
  }
  return PromptQueue(std::move(prompts), {.prompts = 3,
                                          .seed = 5,
                                          .retry = {.probability = replays},
                                          .leaves_room = [](const auto&) { return true; }});
}

// Two answers for each prompt_group; answers to tasks in `solved` pass.
std::vector<Episode> answers_to(const std::vector<PromptGroup>& prompt_groups, int64_t step,
                                const std::set<std::string>& solved) {
  std::vector<Episode> episodes;
  for (size_t group = 0; group < prompt_groups.size(); ++group) {
    for (int64_t sample = 0; sample < 2; ++sample) {
      Episode episode;
      episode.step = step;
      episode.group = static_cast<int64_t>(group);
      episode.sample = sample;
      episode.task = prompt_groups[group].prompt->task.id;
      episode.is_replay = prompt_groups[group].is_replay;
      const bool passes = solved.contains(episode.task) && sample == 1;
      Turn turn;
      turn.answer = "answer " + std::to_string(sample);
      turn.judgement.outcome = passes ? "pass" : "wrong";
      turn.judgement.s = passes ? 1.0 : -0.5;
      if (!passes) turn.judgement.stage = rl::Stage::kComparison;
      episode.turns.push_back(turn);
      episodes.push_back(episode);
    }
  }
  return episodes;
}

std::vector<std::string> tasks_of(const std::vector<PromptGroup>& prompt_groups) {
  std::vector<std::string> tasks;
  for (const PromptGroup& prompt_group : prompt_groups) {
    tasks.push_back(prompt_group.prompt->task.id + (prompt_group.is_replay ? " again" : ""));
  }
  return tasks;
}

TEST(PromptQueue, RefillsWithTheNextPromptsOfTheEpoch) {
  PromptQueue queue = make_queue(/*replays=*/0), reference = make_queue(/*replays=*/0);
  std::vector<std::string> got = tasks_of(queue.choose(0));
  for (const std::string& task : tasks_of(queue.refill(3))) got.push_back(task);
  EXPECT_EQ(std::set(got.begin(), got.end()).size(), 6U);
  std::vector<std::string> expected = tasks_of(reference.choose(0));
  for (const std::string& task : tasks_of(reference.choose(1))) expected.push_back(task);
  EXPECT_EQ(got, expected);
  EXPECT_EQ(queue.position(), reference.position());
}

TEST(PromptQueue, TheSameCallsMakeTheSameChoices) {
  std::vector<std::vector<std::string>> runs(2);
  size_t num_replays = 0;
  for (std::vector<std::string>& chosen : runs) {
    PromptQueue queue = make_queue();
    for (int64_t step = 0; step < 20; ++step) {
      const std::vector<PromptGroup> prompt_groups = queue.choose(step);
      for (const std::string& task : tasks_of(prompt_groups)) chosen.push_back(task);
      const auto more = static_cast<size_t>(step % 3);
      for (const std::string& task : tasks_of(queue.refill(more))) chosen.push_back(task);
      num_replays += queue.remember(step, answers_to(prompt_groups, step, {"t1"})).num_replays;
    }
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_GT(num_replays, 5U);
}

TEST(PromptQueue, RemembersFailedTasksUntilTheyAreSolved) {
  PromptQueue queue = make_queue(/*replays=*/0);
  const std::vector<PromptGroup> prompt_groups = queue.choose(0);
  const RetryCounts failed = queue.remember(0, answers_to(prompt_groups, 0, {}));
  EXPECT_EQ((std::pair{failed.num_all_failed, failed.buffer_size}), (std::pair{3UL, 3UL}));
  const auto first = answers_to({prompt_groups[0]}, 1, {prompt_groups[0].prompt->task.id});
  EXPECT_EQ(queue.remember(1, first).buffer_size, 2U);
}

TEST(PromptQueue, ReplaysTheTaskAloneIfRequested) {
  PromptQueue queue({{{"t", "t", "code"}, {{"user", "task\n"}}}},
                    {.prompts = 1,
                     .seed = 5,
                     .retry = {.probability = 1},
                     .replays_show_failure = false,
                     .leaves_room = [](const auto&) { return true; }});
  queue.remember(0, answers_to(queue.choose(0), 0, {}));
  const std::vector<PromptGroup> prompt_groups = queue.choose(1);
  ASSERT_TRUE(prompt_groups[0].is_replay);
  EXPECT_EQ(prompt_groups[0].messages.back().content, "task\n");
}

TEST(PromptQueue, KeepsTheCodeOfAnAnswerThatIsTooLongForAReplay) {
  PromptQueue queue({{{"t", "t", "code"}, {{"user", "task\n"}}}},
                    {.prompts = 1,
                     .seed = 5,
                     .retry = {.probability = 1},
                     .leaves_room = [](const std::vector<model::Message>& messages) {
                       return messages.back().content.size() < 400;
                     }});
  std::vector<Episode> episodes = answers_to(queue.choose(0), 0, {});
  const std::string code = "```python\nclass ModelNew: pass\n```\n";
  for (Episode& episode : episodes) {
    episode.turns[0].answer = "<think>\n" + std::string(2000, 'x') + "</think>\n" + code;
  }
  queue.remember(0, episodes);
  const std::vector<PromptGroup> prompt_groups = queue.choose(1);
  ASSERT_TRUE(prompt_groups[0].is_replay);
  EXPECT_EQ(prompt_groups[0].messages.back().content,
            "task\nAn answer that failed:\n" + code + "\nWrite the whole answer again.\n");
}

}  // namespace
}  // namespace mc::loop
