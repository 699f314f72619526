// SPDX-License-Identifier: Apache-2.0
#include "report/bench.h"

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/bench_json.h"
#include "report/report.h"

namespace mc::report {
namespace {

using Outcome = Attempt::Outcome;
using testing::HasSubstr;
using testing::Not;

Attempt attempt(const std::string& task, int64_t sample, Outcome outcome,
                std::optional<double> speedup = {}) {
  const auto estimate = [](double one) { return task::Estimate{one, one - 0.25, one + 0.5}; };
  return {task, sample, 0, outcome, speedup ? std::optional(estimate(*speedup)) : std::nullopt};
}

Attempt turn(int64_t number, Outcome outcome) { return {"t", 0, number, outcome, {}}; }

// ---- Intervals ----------------------------------------------------------------------------------

TEST(Wilson, EqualsPublishedValues) {
  // Newcombe (1998), table I, method 3 (score), 95 %.
  const struct {
    int64_t num_passed, num;
    double low, high;
  } kTable[] = {{81, 263, 0.2553, 0.3662},
                {15, 148, 0.0624, 0.1605},
                {0, 20, 0, 0.1611},
                {1, 29, 0.0061, 0.1718}};
  for (const auto& row : kTable) {
    const Interval found = wilson(row.num_passed, row.num);
    EXPECT_NEAR(found.low, row.low, 5e-5) << row.num;
    EXPECT_NEAR(found.high, row.high, 5e-5) << row.num;
  }
}

TEST(Wilson, ContainsTheProportion) {
  for (int64_t num = 1; num <= 40; ++num) {
    for (int64_t num_passed = 0; num_passed <= num; ++num_passed) {
      const Interval found = wilson(num_passed, num);
      const double p = static_cast<double>(num_passed) / static_cast<double>(num);
      EXPECT_LE(0, found.low);
      EXPECT_LE(found.low, p);
      EXPECT_LE(p, found.high);
      EXPECT_LE(found.high, 1);
      EXPECT_LT(found.low, found.high);
    }
  }
}

// The reference is the normal interval of the mean, which the bootstrap approaches for many values.
TEST(BootstrapMean, ApproachesTheNormalIntervalForManyValues) {
  std::mt19937_64 random(7);
  std::vector<double> values(400);
  double sum = 0;
  for (double& value : values) sum += value = std::uniform_real_distribution<double>()(random);
  const double mean = sum / 400;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double half = 1.96 * std::sqrt(squares / 399 / 400);
  const Interval found = bootstrap_mean(values);
  EXPECT_NEAR(found.low, mean - half, 0.1 * half);
  EXPECT_NEAR(found.high, mean + half, 0.1 * half);
  EXPECT_EQ(bootstrap_mean(values), found) << "not the same again";
}

TEST(FigureOf, IsAProportionWhereAllValuesAreZeroOrOne) {
  const std::vector<double> values = {1, 1, 0, 1};
  EXPECT_EQ(figure_of(values)->interval, wilson(3, 4));
  EXPECT_DOUBLE_EQ(figure_of(values)->value, 0.75);
}

TEST(FigureOf, HasTheWidestIntervalForOneTaskThatPassesSometimes) {
  const std::vector<double> values = {0.5};
  EXPECT_EQ(figure_of(values)->interval, (Interval{0, 1}));
  EXPECT_EQ(figure_of({}), std::nullopt);
}

// ---- One run ------------------------------------------------------------------------------------

// A slow reference for Pass@k: the share of all k-subsets of the samples that contain a pass.
double pass_at_k_by_counting(const std::vector<bool>& passed, int64_t k) {
  int64_t num = 0;
  int64_t num_with_a_pass = 0;
  for (uint32_t chosen = 0; chosen < 1U << passed.size(); ++chosen) {
    if (__builtin_popcount(chosen) != k) continue;
    bool has_pass = false;
    for (size_t i = 0; i < passed.size(); ++i) has_pass |= passed[i] && (chosen >> i & 1U) != 0;
    ++num;
    num_with_a_pass += has_pass ? 1 : 0;
  }
  return static_cast<double>(num_with_a_pass) / static_cast<double>(num);
}

struct RandomRun {
  std::vector<Attempt> attempts;
  std::vector<std::vector<bool>> passed;  // The results of the scored samples of a task.
  // The speed-ups of the same samples; 0 for a sample that fails.
  std::vector<std::vector<double>> speedups;
};

RandomRun random_run(uint64_t seed) {
  std::mt19937_64 random(seed);
  RandomRun run;
  const auto draw = [&](uint64_t below) { return random() % below; };
  const uint64_t num_tasks = 1 + draw(6);
  for (uint64_t t = 0; t < num_tasks; ++t) {
    run.passed.emplace_back();
    run.speedups.emplace_back();
    const uint64_t num = 1 + draw(8);
    for (uint64_t i = 0; i < num; ++i) {
      const auto drawn = static_cast<Outcome>(draw(4));
      const double speedup = 0.25 * static_cast<double>(1 + draw(12));
      const bool passes = drawn == Outcome::kPassed;
      run.attempts.push_back(attempt("task " + std::to_string(t), static_cast<int64_t>(i), drawn,
                                     passes ? std::optional(speedup) : std::nullopt));
      if (drawn == Outcome::kUnsupported || drawn == Outcome::kInfra) continue;
      run.passed.back().push_back(passes);
      run.speedups.back().push_back(passes ? speedup : 0);
    }
  }
  return run;
}

TEST(BenchFigures, EqualTheirSlowReferences) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const RandomRun run = random_run(seed);
    const BenchFigures found = bench_figures(run.attempts, {.ks = {1, 2, 5}});
    for (const int64_t k : {1, 2, 5}) {
      double sum = 0;
      int64_t num = 0;
      for (const auto& passed : run.passed) {
        if (static_cast<int64_t>(passed.size()) < k) continue;
        sum += pass_at_k_by_counting(passed, k);
        ++num;
      }
      ASSERT_EQ(found.pass_at.contains(k), num > 0);
      if (num == 0) continue;
      EXPECT_NEAR(found.pass_at.at(k).value, sum / static_cast<double>(num), 1e-12);
    }
    for (const double p : {0.0, 1.0, 1.1, 1.5, 2.0}) {
      double sum = 0;
      double num = 0;
      for (const auto& speedups : run.speedups) {
        if (speedups.empty()) continue;
        double fast = 0;
        for (const double speedup : speedups) fast += speedup > p ? 1 : 0;
        sum += fast / static_cast<double>(speedups.size());
        num += 1;
      }
      if (num == 0) continue;
      const double value = p == kFaster ? found.faster_rate->value : found.fast.at(p).value;
      EXPECT_NEAR(value, sum / num, 1e-12) << p;
    }
  }
}

TEST(BenchFigures, CountAndLeaveOutUnscoredAttempts) {
  const std::vector<Attempt> attempts = {attempt("a", 0, Outcome::kPassed),
                                         attempt("a", 1, Outcome::kUnsupported),
                                         attempt("b", 0, Outcome::kInfra)};
  const BenchFigures found = bench_figures(attempts, {.ks = {1, 2}});
  EXPECT_EQ(found.num_tasks, 2);
  EXPECT_EQ(found.num_not_scored, 2);
  EXPECT_EQ(found.unsupported, (std::map<std::string, int64_t>{{"a", 1}}));
  EXPECT_EQ(found.num_samples, 1);
  EXPECT_DOUBLE_EQ(found.pass_at.at(1).value, 1);
  EXPECT_EQ(found.pass_at.at(1).num_tasks, 1);
  EXPECT_FALSE(found.pass_at.contains(2));
}

TEST(BenchFigures, HaveNoSpeedWhereAPassWasNotTimed) {
  const std::vector<Attempt> attempts = {attempt("a", 0, Outcome::kPassed, 3.0),
                                         attempt("b", 0, Outcome::kPassed)};
  const BenchFigures found = bench_figures(attempts, {});
  EXPECT_DOUBLE_EQ(found.fast.at(0).value, 1);
  EXPECT_FALSE(found.fast.contains(1));
  EXPECT_EQ(found.faster_rate, std::nullopt);
}

TEST(BenchFigures, HaveARateOverTorchCompileWhereEveryPassWasTimedBesideIt) {
  Attempt fast = attempt("a", 0, Outcome::kPassed, 3.0),
          slow = attempt("a", 1, Outcome::kPassed, 3.0);
  EXPECT_EQ(bench_figures(std::vector{fast, slow}, {}).faster_than_compiled, std::nullopt);
  fast.over_compile = task::Estimate{1.2, 1.15, 1.25};
  EXPECT_EQ(bench_figures(std::vector{fast, slow}, {}).faster_than_compiled, std::nullopt);
  slow.over_compile = task::Estimate{1.05, 1.0, 1.1};
  const BenchFigures found =
      bench_figures(std::vector{fast, slow, attempt("b", 0, Outcome::kFailed)}, {});
  EXPECT_DOUBLE_EQ(found.faster_than_compiled->value, 0.25);
  EXPECT_THAT(bench_table(std::vector{BenchRow{"all", found}}), HasSubstr("over torch.compile"));
}

TEST(BenchFigures, ASamplePassesWhenOneOfItsTurnsDoes) {
  const std::vector<Attempt> attempts = {turn(0, Outcome::kFailed), turn(1, Outcome::kInfra),
                                         turn(2, Outcome::kPassed)};
  const BenchFigures found = bench_figures(attempts, {});
  EXPECT_DOUBLE_EQ(found.pass_at.at(1).value, 1);
  EXPECT_DOUBLE_EQ(found.first_turn->value, 0);
  EXPECT_DOUBLE_EQ(found.best_turn->value, 1);
  EXPECT_EQ(found.num_attempts, 3);
  EXPECT_EQ(found.num_samples, 1);
}

TEST(BenchTable, NamesTasksWithUnsupportedAnswers) {
  const std::vector<Attempt> attempts = {
      attempt("a", 0, Outcome::kUnsupported), attempt("a", 1, Outcome::kUnsupported),
      attempt("b", 0, Outcome::kUnsupported), attempt("b", 1, Outcome::kPassed)};
  const std::vector<BenchRow> rows = {{"all", bench_figures(attempts, {})}};
  EXPECT_THAT(bench_table(rows), HasSubstr("unsupported: 3 of 4 answers (75.0 %), which gain by it "
                                           "where they are wrong: a (2 times), b\n"));
}

TEST(AttemptOf, NeverScoresAFailureOfTheEnvironment) {
  task::Verdict verdict;
  verdict.task = "t";
  for (const task::Outcome& outcome :
       {task::Outcome(task::Infra{"x"}), task::Outcome(task::Unsupported{})}) {
    verdict.outcome = outcome;
    EXPECT_EQ(attempt_of(verdict, 0, 0).outcome, std::holds_alternative<task::Infra>(outcome)
                                                     ? Outcome::kInfra
                                                     : Outcome::kUnsupported);
  }
  verdict.outcome = task::Wrong{0.9, false, {}};
  EXPECT_EQ(attempt_of(verdict, 0, 0).outcome, Outcome::kFailed);
  task::Performance performance;
  performance.speedup_eager = {1.5, 1.4, 1.6};
  verdict.outcome = task::Passed{{}, performance};
  EXPECT_EQ(attempt_of(verdict, 3, 1).outcome, Outcome::kPassed);
  EXPECT_EQ(attempt_of(verdict, 3, 1).speedup, performance.speedup_eager);
  EXPECT_EQ(attempt_of(verdict, 3, 1).sample, 3);
}

// ---- Two runs -----------------------------------------------------------------------------------

TEST(PairedDifference, UsesOnlyTheTasksOfBothRuns) {
  const std::vector<Attempt> a = {attempt("x", 0, Outcome::kFailed),
                                  attempt("y", 0, Outcome::kPassed),
                                  attempt("only a", 0, Outcome::kPassed)};
  const std::vector<Attempt> b = {attempt("x", 0, Outcome::kPassed),
                                  attempt("y", 0, Outcome::kPassed),
                                  attempt("z", 0, Outcome::kFailed)};
  const auto found = paired_difference(a, b);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->num_tasks, 2);
  EXPECT_EQ(found->num_better, 1);
  EXPECT_EQ(found->num_worse, 0);
  EXPECT_DOUBLE_EQ(found->difference, 0.5);
  EXPECT_EQ(paired_difference(a, {}), std::nullopt);
}

TEST(PairedDifference, IsNarrowerThanThatOfRunsThatAreNotPaired) {
  std::vector<Attempt> a;
  std::vector<Attempt> b;
  for (int64_t i = 0; i < 100; ++i) {
    const std::string task = std::to_string(i);
    a.push_back(attempt(task, 0, i < 50 ? Outcome::kPassed : Outcome::kFailed));
    b.push_back(attempt(task, 0, i < 60 ? Outcome::kPassed : Outcome::kFailed));
  }
  const auto found = paired_difference(a, b);
  EXPECT_NEAR(found->difference, 0.1, 1e-12);
  EXPECT_GT(found->interval.low, 0);
  EXPECT_LT(found->interval.high, 0.2);
}

// ---- For people and programs --------------------------------------------------------------------

TEST(BenchTable, ShowsSpeedAndTurnsOnlyWhereThereAreAny) {
  const std::vector<Attempt> plain = {attempt("a", 0, Outcome::kPassed),
                                      attempt("b", 0, Outcome::kFailed)};
  const std::vector<BenchRow> rows = {{"all", bench_figures(plain, {})}};
  EXPECT_EQ(bench_table(rows),
            "     tasks  answers  not scored              Pass@1\n"
            "all      2        2           0  50.0 % [9.5, 90.5]\n");
  const std::vector<Attempt> timed = {turn(0, Outcome::kFailed),
                                      {"t", 0, 1, Outcome::kPassed, task::Estimate{1.25, 1, 1.4}}};
  const std::vector<BenchRow> more = {{"all", bench_figures(timed, {})}};
  EXPECT_THAT(bench_table(more), HasSubstr("fast_1.5"));
  EXPECT_THAT(bench_table(more), HasSubstr("first turn"));
  EXPECT_THAT(bench_table(more), HasSubstr("100.0 % [20.7, 100.0] (1 uncertain)"));
}

TEST(BenchFigures, CountSamplesWhoseIntervalHasTheThreshold) {
  const auto timed = [](int64_t sample, int64_t number, const task::Estimate& speedup) {
    return Attempt{"t", sample, number, Outcome::kPassed, speedup};
  };
  const std::vector<Attempt> attempts = {
      // The interval of its best turn excludes the threshold.
      timed(0, 0, {0.8, 0.7, 1.2}), timed(0, 1, {1.3, 1.2, 1.4}), timed(1, 0, {1.05, 0.9, 1.12}),
      timed(2, 0, {1.1, 1.1, 1.1}), attempt("t", 3, Outcome::kFailed)};
  const BenchFigures figures = bench_figures(attempts, {});
  const std::map<double, int64_t> expected = {{1, 1}, {1.1, 2}, {1.5, 0}, {2, 0}};
  EXPECT_EQ(figures.uncertain, expected);
  const std::vector<BenchRow> rows = {{"all", figures}};
  const auto json = nlohmann::json::parse(
      bench_json({.rows = rows, .judged = {}, .num_missing = 0, .num_cut = 0, .paired = {}}));
  EXPECT_EQ(json["groups"]["all"]["uncertain"]["1.1"], 2);
}

TEST(BenchJson, HasNullForUnknownFigures) {
  const std::vector<Attempt> attempts = {attempt("a", 0, Outcome::kPassed)};
  const std::vector<BenchRow> rows = {{"all", bench_figures(attempts, {})}};
  Judged judged;
  judged.verdict.outcome = task::Passed{};
  const std::vector<Judged> all = {judged};
  const auto json = nlohmann::json::parse(
      bench_json({.rows = rows, .judged = all, .num_missing = 2, .num_cut = 1, .paired = {}}));
  EXPECT_EQ(json["missing"], 2);
  EXPECT_EQ(json["outcomes"]["pass"], 1);
  EXPECT_EQ(json["groups"]["all"]["pass_at"]["1"]["value"], 1.0);
  EXPECT_TRUE(json["groups"]["all"]["fast"]["1.5"].is_null());
  EXPECT_TRUE(json["paired"].is_null());
}

}  // namespace
}  // namespace mc::report
