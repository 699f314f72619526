// SPDX-License-Identifier: Apache-2.0
#include "reward/score.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "task/testing/verdict_generator.h"

namespace mc::reward {
namespace {

using task::Outcome;
using task::Passed;
using task::Performance;
using task::Wrong;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Passed passed_with(const task::Estimate& speedup_eager) {
  Performance performance;
  performance.speedup_eager = speedup_eager;
  return {{}, performance};
}

Passed passed_at(double speedup_low) { return passed_with({9, speedup_low, 10}); }

Wrong wrong_at(double q) { return {q, false, {}}; }

std::optional<double> score_of(const Outcome& outcome, const ScoreOptions& options = {}) {
  task::Verdict verdict;
  verdict.outcome = outcome;
  return score(verdict, options);
}

TEST(Score, IsEmptyForAResultThatAConstantEarnsOnATrivialTask) {
  const task::RuleFinding constant{task::kConstantAnswer, "", {}};
  const task::RuleFinding other{"run.host_output", "", {}};
  const struct {
    Outcome outcome;
    std::optional<double> score;
  } kTable[] = {
      {Passed{}, std::nullopt},
      {passed_at(3), std::nullopt},
      {wrong_at(0.8), std::nullopt},
      {task::Illegal{"run", {constant}}, std::nullopt},
      {wrong_at(0), -1},
      {task::Illegal{"run", {other}}, -1},
      {task::CompileFailed{}, -1},
      {task::Crashed{}, -1},
  };
  for (const auto& row : kTable) {
    task::Verdict verdict;
    verdict.outcome = row.outcome;
    verdict.task_grade = {"trivial", {"every trial is passed by zeros"}};
    EXPECT_EQ(score(verdict, {}), row.score) << task::outcome_name(row.outcome);
    verdict.task_grade.grade = "weak";
    EXPECT_TRUE(score(verdict, {}).has_value()) << task::outcome_name(row.outcome);
  }
}

TEST(Score, MatchesThePaperForEveryOutcome) {
  const struct {
    Outcome outcome;
    std::optional<double> score;
  } kTable[] = {
      {task::Unextractable{}, -1},
      {task::Illegal{}, -1},
      {task::CompileFailed{}, -1},
      {task::Crashed{}, -1},
      {task::TimedOut{}, -1},
      {task::OutOfMemory{}, -1},
      {task::Unsupported{}, std::nullopt},
      {task::Infra{}, std::nullopt},
      {wrong_at(0), -1},
      {wrong_at(0.2), -0.4},
      {wrong_at(0.5), -0.25},
      {wrong_at(0.8), -0.1},
      {Wrong{0.8, true, {}}, -0.1},
      {Passed{}, 1},
      {passed_at(0), 1},
      {passed_at(0.5), 1},
      {passed_at(1), 1},
      {passed_at(1.5), 1.125},
      {passed_at(2), 1.25},
      {passed_at(3), 1.5},
      {passed_at(100), 1.5},
      {passed_at(kInfinity), 1.5},
      {passed_at(-kInfinity), 1},
      {passed_at(std::nan("")), 1},
  };
  for (const auto& row : kTable) {
    const auto got = score_of(row.outcome);
    ASSERT_EQ(got.has_value(), row.score.has_value()) << task::outcome_name(row.outcome);
    if (!got) continue;
    EXPECT_DOUBLE_EQ(*got, *row.score) << task::outcome_name(row.outcome);
  }
}

TEST(Score, TakesItsWeightsFromTheOptions) {
  EXPECT_DOUBLE_EQ(*score_of(passed_at(5), {.lambda = 0.5, .nu_max = 3}), 2.5);
  EXPECT_DOUBLE_EQ(*score_of(passed_at(3), {.lambda = 0.5, .nu_max = 3}), 2);
  EXPECT_DOUBLE_EQ(*score_of(passed_at(3), {.lambda = 0, .nu_max = 3}), 1);
  EXPECT_DOUBLE_EQ(*score_of(wrong_at(0.5), {.lambda = 0.5, .nu_max = 3}), -0.25);
}

TEST(Score, IgnoresASpeedUpThatMayBeNoise) {
  EXPECT_DOUBLE_EQ(*score_of(passed_with({3, 0.9, 5})), 1);
}

TEST(Score, UsesOnlyTheSpeedUpOverEager) {
  Performance performance;
  performance.speedup_eager = {2, 2, 2};
  performance.speedup_compile = task::Estimate{0.5, 0.5, 0.5};
  EXPECT_DOUBLE_EQ(*score_of(Passed{{}, performance}), 1.25);
}

TEST(Score, IsAlwaysLowerForAWrongKernelThanForACorrectOne) {
  for (const double q : {1.0, 1.5, kInfinity}) EXPECT_LT(*score_of(wrong_at(q)), 1);
  EXPECT_DOUBLE_EQ(*score_of(wrong_at(std::nan(""))), -1);
}

TEST(Score, StaysInItsRange) {
  for (size_t outcome = 0; outcome < std::variant_size_v<Outcome>; ++outcome) {
    for (uint64_t seed = 0; seed < 100; ++seed) {
      const auto got = score(task::generate_verdict(seed, outcome), {});
      if (!got) continue;
      EXPECT_GE(*got, -1) << "outcome " << outcome << ", seed " << seed;
      EXPECT_LE(*got, 1.5) << "outcome " << outcome << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace mc::reward
