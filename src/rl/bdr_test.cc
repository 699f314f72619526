// SPDX-License-Identifier: Apache-2.0
#include "rl/bdr.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "rl/random.h"

namespace mc::rl {
namespace {

constexpr double kReplay = 0;  // A value of u at which every draw is a replay.

FailedCandidate failure(const std::string& task, uint64_t step = 0, uint64_t group = 0) {
  FailedCandidate made;
  made.task = task;
  made.code = "code of " + task + " at " + std::to_string(step) + "." + std::to_string(group);
  made.step = step;
  made.group = group;
  return made;
}

std::vector<std::string> tasks_of(const RetryBuffer& buffer) {
  std::vector<std::string> tasks;
  for (const RetryItem& item : buffer.state().items) tasks.push_back(item.candidate.task);
  return tasks;
}

using Names = std::vector<std::string>;

// ---- Insertion ----------------------------------------------------------------------------------

TEST(AllFailed, IsTrueForAGroupWithVerdictsAndWithoutAPass) {
  const std::optional<double> infra;
  using Samples = std::vector<std::vector<std::optional<double>>>;
  const struct {
    Samples samples;
    bool is_all_failed;
  } kTable[] = {
      {{{-1.0}, {-1.0}}, true},
      {{{-0.01, -0.3, -1.0}, {-1.0}}, true},  // A partly correct answer is not a pass.
      {{{-1.0, 1.0}, {-1.0}}, false},         // Repaired.
      {{{1.0}, {-1.0}}, false},
      {{{infra}, {-1.0}}, true},
      {{{infra}, {1.3}}, false},
      {{{infra}, {infra, infra}}, false},  // No turn has a score.
      {{}, false},
  };
  for (const auto& row : kTable) EXPECT_EQ(is_all_failed(row.samples), row.is_all_failed);
}

TEST(FailedStage, IsTheStageAtWhichACandidateFailed) {
  const auto crashed = [](const char* stage) {
    task::Crashed outcome;
    outcome.stage = stage;
    return outcome;
  };
  const struct {
    task::Outcome outcome;
    std::optional<Stage> stage;
  } kTable[] = {
      {task::Unextractable{}, Stage::kExtraction},
      {task::Illegal{"static", {}}, Stage::kLegality},
      {task::Illegal{"link", {}}, Stage::kCompile},
      {task::Illegal{"run", {}}, Stage::kForward},
      {task::Illegal{"timing", {}}, Stage::kComparison},
      {task::CompileFailed{}, Stage::kCompile},
      {crashed("record"), Stage::kRecord},
      {crashed("load"), Stage::kLoad},
      {crashed("init"), Stage::kInit},
      {crashed("forward"), Stage::kForward},
      {task::TimedOut{"compile", 1, {}}, Stage::kCompile},
      {task::TimedOut{"forward", 1, {}}, Stage::kForward},
      {task::OutOfMemory{"init", 1}, Stage::kInit},
      {task::Wrong{}, Stage::kComparison},
      {task::Passed{}, std::nullopt},
      {task::Unsupported{}, std::nullopt},
      {task::Infra{}, std::nullopt},
  };
  for (const auto& row : kTable) {
    EXPECT_EQ(failed_stage(row.outcome), row.stage) << task::outcome_name(row.outcome);
  }
}

TEST(ChooseFailure, TakesTheSmallestKeyAmongEqualCandidates) {
  std::vector<FailedCandidate> candidates(2);
  candidates[0].code = "aaaa";
  candidates[1].code = "bbbb";
  const size_t least = retry_key(candidates[0]) < retry_key(candidates[1]) ? 0 : 1;
  EXPECT_EQ(choose_failure(candidates), least);
  std::swap(candidates[0], candidates[1]);
  EXPECT_EQ(choose_failure(candidates), 1 - least);
}

// ---- The queue ----------------------------------------------------------------------------------

TEST(RetryBuffer, DropsTheOldestWhenItIsFull) {
  RetryBuffer buffer({.capacity = 3});
  for (const char* task : {"a", "b", "c", "d"}) buffer.insert({failure(task)});
  EXPECT_EQ(tasks_of(buffer), (Names{"b", "c", "d"}));
}

TEST(RetryBuffer, Holds256ByDefault) {
  RetryBuffer buffer({});
  for (int i = 0; i < 300; ++i) buffer.insert({failure(std::to_string(i))});
  EXPECT_EQ(buffer.size(), 256U);
  EXPECT_EQ(tasks_of(buffer).front(), "44");
}

TEST(RetryBuffer, ReplacesAnOlderFailureOfTheSameTask) {
  RetryBuffer buffer({});
  buffer.insert({failure("a", 1), failure("b", 1, 1)});
  buffer.insert({failure("a", 2)});
  EXPECT_EQ(tasks_of(buffer), (Names{"a", "b"}));
  EXPECT_EQ(buffer.state().items[0].candidate.step, 2U);
  buffer.insert({failure("a", 1, 7)});  // A failure of an older policy that arrives late.
  EXPECT_EQ(buffer.state().items[0].candidate.step, 2U);
}

TEST(RetryBuffer, DoesNotDependOnTheOrderOfCompletion) {
  std::vector<FailedCandidate> failures;
  for (uint64_t group = 0; group < 8; ++group) {
    failures.push_back(failure("task" + std::to_string(group % 5), 3, group));
  }
  RetryBuffer forward({.capacity = 4});
  forward.insert(failures);
  std::reverse(failures.begin(), failures.end());
  RetryBuffer backward({.capacity = 4});
  backward.insert(failures);
  EXPECT_EQ(forward.state(), backward.state());
}

TEST(RetryBuffer, DrawsTheOldestItemThatIsReady) {
  RetryBuffer buffer({});
  buffer.insert({failure("a", 5), failure("b", 5, 1)});
  // Items are not drawn in the step that inserted them.
  EXPECT_EQ(buffer.draw(kReplay, 5), std::nullopt);
  EXPECT_EQ(buffer.draw(kReplay, 6)->task, "a");
  EXPECT_EQ(buffer.draw(kReplay, 6)->task, "b");  // "a" was already drawn in this step.
  EXPECT_EQ(buffer.draw(kReplay, 6), std::nullopt);
  EXPECT_EQ(buffer.draw(kReplay, 7)->task, "a");
}

TEST(RetryBuffer, DrawsNoTaskTwiceInAStepThoughAFailureOfAnOlderPolicyComesBetween) {
  RetryBuffer buffer({});
  buffer.insert({failure("a", 1)});
  EXPECT_EQ(buffer.draw(kReplay, 5)->step, 1U);
  buffer.insert({failure("a", 3)});
  EXPECT_EQ(buffer.draw(kReplay, 5), std::nullopt);
  EXPECT_EQ(buffer.draw(kReplay, 6)->step, 3U);
}

TEST(RetryBuffer, DrawsOnlyIfTheNumberIsBelowTheProbability) {
  RetryBuffer buffer({.probability = 0.25});
  buffer.insert({failure("a")});
  EXPECT_EQ(buffer.draw(0.25, 1), std::nullopt);
  EXPECT_NE(buffer.draw(std::nextafter(0.25, 0), 1), std::nullopt);
}

TEST(RetryBuffer, ReplaysATaskTwiceAtMost) {
  RetryBuffer buffer({});
  for (uint64_t step = 0; step < 10; ++step) {
    buffer.draw(kReplay, step);
    buffer.insert({failure("a", step)});
  }
  EXPECT_EQ(buffer.state().replays.at("a"), 2U);
  EXPECT_EQ(buffer.size(), 0U);
}

TEST(RetryBuffer, ForgetsATaskThatWasSolved) {
  RetryBuffer buffer({});
  buffer.insert({failure("a", 0), failure("b", 0, 1)});
  buffer.draw(kReplay, 1);
  buffer.solved("a");
  EXPECT_EQ(tasks_of(buffer), (Names{"b"}));
  EXPECT_TRUE(buffer.state().replays.empty());
}

TEST(RetryBuffer, ReplaysWithItsProbability) {
  constexpr uint64_t kSeeds = 10;
  constexpr uint64_t kDraws = 10000;  // The number of draws for each seed.
  constexpr double kAll = kSeeds * kDraws;
  double num_replays = 0;
  for (uint64_t i = 0; i < kSeeds * kDraws; ++i) {
    RetryBuffer buffer({});
    buffer.insert({failure("a")});
    if (buffer.draw(uniform({.seed = i / kDraws, .step = 1, .slot = i % kDraws}), 1)) ++num_replays;
  }
  EXPECT_NEAR(num_replays, 0.1 * kAll, 3 * std::sqrt(kAll * 0.1 * 0.9));
}

TEST(RetryBuffer, ReportsTheMeanAgeOfItsItems) {
  RetryBuffer buffer({});
  EXPECT_EQ(buffer.age_mean(4), 0);
  buffer.insert({failure("a", 1), failure("b", 2)});
  EXPECT_EQ(buffer.age_mean(4), 2.5);
}

}  // namespace
}  // namespace mc::rl
