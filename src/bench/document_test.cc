// SPDX-License-Identifier: Apache-2.0
#include "bench/document.h"

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/hash.h"
#include "task/testing/verdict_generator.h"

namespace mc::bench {
namespace {

using Json = nlohmann::json;
using store::Judgement;

constexpr double kSolUs = 10;
constexpr double kEagerUs = 50;

task::Passed passed_in(double time_us) {
  task::Performance timed;
  timed.time_us = {time_us, time_us, time_us};
  timed.time_eager_us = {kEagerUs, kEagerUs, kEagerUs};
  const double speedup = kEagerUs / time_us;
  timed.speedup_eager = {speedup, speedup - 1, speedup + 1};
  timed.floor.time_us = kSolUs;
  task::Passed passed;
  passed.performance = timed;
  return passed;
}

Judgement judged(store::AnswerKey key, task::Outcome outcome, std::optional<double> reward = 0.5) {
  Judgement one{.key = std::move(key),
                .reward = reward,
                .seconds = 2,
                .feedback = "see line 3",
                .verdict = {}};
  one.verdict.task = one.key.id;
  one.verdict.outcome = std::move(outcome);
  return one;
}

RunData timed_run() {
  RunData data;
  data.record = {.name = "m",
                 .kind = "bench",
                 .settings = R"({"samples": 2, "turns": 2})",
                 .environment = R"({"program": "musacoder 0.1.0"})",
                 .created = "2026-01-31T23:59:59Z"};
  data.tasks = {{"a", "level 1", {"softmax"}, "code of a"}, {"b", "level 2", {}, "code of b"}};
  data.answers = {{.key = {"a", 0, 0},
                   .completion = "first",
                   .reasoning = "so",
                   .finish = "length",
                   .num_tokens = 100,
                   .reasoning_tokens = 40,
                   .prompt_tokens = 1000},
                  {.key = {"a", 0, 1}, .completion = "second", .num_tokens = 200},
                  {.key = {"a", 1, 0}, .completion = "third", .num_tokens = 300},
                  {.key = {"b", 0, 0}, .completion = "fourth", .num_tokens = 400}};
  data.judgements = {judged({"a", 0, 0}, task::CompileFailed{}), judged({"a", 0, 1}, passed_in(25)),
                     judged({"a", 1, 0}, passed_in(50)),
                     judged({"b", 0, 0}, task::Unsupported{}, {})};
  data.prices = "[1, 10]";
  return data;
}

Json document_of(const std::vector<RunData>& runs) {
  return Json::parse(document_json(
      runs, {.title = "t", .created = "2026-02-01T00:00:00Z", .program = "musacoder 0.1.0"}));
}

// ---- The SOL score ------------------------------------------------------------------------------

TEST(SolScore, IsOneAtTheBoundAndAHalfAtEagerPyTorch) {
  const struct {
    double time_us, score;
  } kTable[] = {{kSolUs, 1},
                {kEagerUs, 0.5},
                {30, 1 / (1 + 20. / 40)},
                {90, 1. / 3},
                // A time below the bound is possible only within the bound's error.
                {kSolUs / 2, 1}};
  for (const auto& row : kTable) {
    const auto score = sol_score(judged({"a", 0, 0}, passed_in(row.time_us)).verdict);
    ASSERT_TRUE(score);
    EXPECT_DOUBLE_EQ(*score, row.score) << row.time_us;
  }
}

TEST(SolScore, IsEmptyWithoutAValidBoundOrTiming) {
  EXPECT_FALSE(sol_score(judged({"a", 0, 0}, task::Passed{}).verdict));
  EXPECT_FALSE(sol_score(judged({"a", 0, 0}, task::Wrong{}).verdict));
  task::Passed at_the_bound = passed_in(20);
  at_the_bound.performance->time_eager_us.median = kSolUs;
  EXPECT_FALSE(sol_score(judged({"a", 0, 0}, at_the_bound).verdict));
}

// ---- The document -------------------------------------------------------------------------------

TEST(Document, HasTheFiguresComputedByHand) {
  const Json document = document_of({timed_run()});
  EXPECT_EQ(document["schema"], 3);
  EXPECT_EQ(document["title"], "t");
  EXPECT_EQ(document["created"], "2026-02-01T00:00:00Z");
  ASSERT_EQ(document["runs"].size(), 1U);
  const Json& run = document["runs"][0];
  EXPECT_EQ(run["name"], "m");
  EXPECT_EQ(run["created"], "2026-01-31T23:59:59Z");
  EXPECT_EQ(run["settings"]["samples"], 2);
  EXPECT_EQ(run["environment"]["program"], "musacoder 0.1.0");
  EXPECT_EQ(run["wanted"], 4);
  EXPECT_EQ(run["judged"], 2);
  EXPECT_EQ(run["missing"], 1);
  EXPECT_THAT(run["unfinished"].get<std::string>(), testing::HasSubstr("2 of 4 samples"));
  EXPECT_EQ(run["cut"], 1);
  EXPECT_EQ(run["tokens"], Json({{"prompt", 1000}, {"completion", 1000}, {"reasoning", 40}}));
  EXPECT_DOUBLE_EQ(run["cost"], (1000 * 1 + 1000 * 10) / 1e6);
  EXPECT_EQ(run["outcomes"], Json({{"compile", 1}, {"pass", 2}, {"unsupported", 1}}));
  EXPECT_EQ(run["turns"], Json::parse(R"([{"turn": 0, "answers": 3, "passed": 1},
                                          {"turn": 1, "answers": 1, "passed": 1}])"));
  // Both samples of "a" pass, one at the speed of eager PyTorch and one at twice that speed.  The
  // sample of "b" is missing.
  EXPECT_EQ(run["fast_curve"], Json::parse("[[0.0, 0.5], [1.0, 0.25], [2.0, 0.0]]"));
  EXPECT_EQ(run["groups"]["all"]["average"]["value"], 0.5);
  EXPECT_EQ(run["groups"]["level 1"]["tasks"], 1);
}

TEST(Document, CountsAtWhichStageAnswersEnd) {
  RunData data;
  const std::vector<std::pair<task::Outcome, size_t>> ends = {{task::Unextractable{}, 0},
                                                              {task::Illegal{"static", {}}, 1},
                                                              {task::Illegal{"link", {}}, 2},
                                                              {task::CompileFailed{}, 2},
                                                              {task::Crashed{}, 3},
                                                              {task::TimedOut{}, 3},
                                                              {task::OutOfMemory{}, 3},
                                                              {task::Wrong{}, 3},
                                                              {task::Illegal{"run", {}}, 4},
                                                              {task::Illegal{"timing", {}}, 4},
                                                              {task::Passed{}, 5},
                                                              {task::Unsupported{}, 6},
                                                              {task::Infra{}, 6}};
  for (size_t i = 0; i < ends.size(); ++i) {
    data.judgements.push_back(judged({"a", static_cast<int64_t>(i), 0}, ends[i].first));
  }
  const Json document = document_of({data});
  EXPECT_EQ(document["runs"][0]["funnel"],
            Json::parse(R"([{"stage": "extraction", "reached": 11, "failed": 1},
                            {"stage": "static legality", "reached": 10, "failed": 1},
                            {"stage": "compile", "reached": 9, "failed": 2},
                            {"stage": "correctness", "reached": 7, "failed": 4},
                            {"stage": "runtime legality", "reached": 3, "failed": 2}])"));
}

TEST(Document, HasASampleForEachVerdictAndATaskForEachId) {
  const Json document = document_of({timed_run()});
  const Json& samples = document["runs"][0]["samples"];
  ASSERT_EQ(samples.size(), 4U);
  const Json& first = samples[0];
  EXPECT_EQ(first["answer"], "first");
  EXPECT_EQ(first["reasoning"], "so");
  EXPECT_EQ(first["finish"], "length");
  EXPECT_EQ(first["tokens"], 100);
  EXPECT_EQ(first["outcome"], "compile");
  EXPECT_EQ(first["stage"], "compile");
  EXPECT_EQ(first["level"], "level 1");
  EXPECT_EQ(first["families"], Json({"softmax"}));
  EXPECT_EQ(first["feedback"], "see line 3");
  EXPECT_EQ(first["reward"], 0.5);
  EXPECT_EQ(first["seconds"], 2);
  EXPECT_EQ(first["speedup"], Json());
  EXPECT_EQ(first["verdict"]["outcome"]["kind"], "compile");
  const Json& second = samples[1];
  EXPECT_EQ(second["turn"], 1);
  EXPECT_EQ(second["pending"], false);
  EXPECT_EQ(samples[3]["pending"], true) << "its second turn is to come";
  EXPECT_EQ(second["stage"], "pass");
  EXPECT_EQ(second["q"], 1);
  EXPECT_EQ(second["speedup"],
            Json({{"value", 2.}, {"low", 1.}, {"high", 3.}, {"uncertain", true}}));
  EXPECT_EQ(second["time_us"], 25);
  EXPECT_DOUBLE_EQ(second["sol_score"], 1 / (1 + 15. / 40));
  EXPECT_EQ(samples[3]["reward"], Json());
  EXPECT_EQ(document["tasks"],
            Json::parse(R"([{"id": "a", "level": "level 1", "families": ["softmax"],
                             "code": "code of a", "sol_us": 10.0},
                            {"id": "b", "level": "level 2", "families": [],
                             "code": "code of b", "sol_us": null}])"));
}

TEST(Document, ComparesEachPairOfRunsAndDistinguishesEqualNames) {
  RunData other = timed_run();
  other.judgements = {judged({"a", 0, 0}, task::Wrong{})};
  other.tasks.pop_back();
  other.answers.clear();
  RunData third = timed_run();
  third.record.name = "another";
  third.judgements = {judged({"z", 0, 0}, task::Wrong{})};
  third.tasks = {{"z", "", {}, "code of z"}};
  third.answers.clear();
  const Json document = document_of({timed_run(), other, third});
  EXPECT_EQ(document["runs"][0]["name"], "m");
  EXPECT_EQ(document["runs"][1]["name"], "m (2)");
  EXPECT_EQ(document["runs"][2]["name"], "another");
  ASSERT_EQ(document["paired"].size(), 1U) << "the third has no task of the others";
  const Json& paired = document["paired"][0];
  EXPECT_EQ(paired["a"], 0);
  EXPECT_EQ(paired["b"], 1);
  EXPECT_EQ(paired["tasks"], 1);
  EXPECT_EQ(paired["worse"], 1);
  EXPECT_EQ(paired["a_value"], 1);
  EXPECT_EQ(paired["b_value"], 0);
  EXPECT_EQ(paired["difference"], -1);
}

TEST(Document, HasNoCurveIfAPassWasNotTimed) {
  RunData data = timed_run();
  data.judgements.push_back(judged({"b", 1, 0}, task::Passed{}));
  EXPECT_EQ(document_of({data})["runs"][0]["fast_curve"], Json::array());
  data.judgements.clear();
  data.answers.clear();
  data.tasks.clear();
  EXPECT_EQ(document_of({data})["runs"][0]["fast_curve"], Json::array());
}

TEST(Document, HasTheCurveByItsDefinition) {
  const uint64_t seed = random_seed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  RunData data;
  std::map<std::string, std::vector<double>> speeds;
  std::set<double> points = {0};
  for (const char* task : {"a", "b", "c"}) {
    const auto num = static_cast<int64_t>(1 + random() % 5);
    for (int64_t sample = 0; sample < num; ++sample) {
      const bool passes = random() % 3 > 0;
      const auto time_us = static_cast<double>(20 + 5 * (random() % 6));
      data.judgements.push_back(
          judged({task, sample, 0}, passes ? task::Outcome(passed_in(time_us)) : task::Wrong{}));
      speeds[task].push_back(passes ? kEagerUs / time_us : 0);
      points.insert(speeds[task].back());
    }
  }
  const Json curve = document_of({data})["runs"][0]["fast_curve"];
  ASSERT_EQ(curve.size(), points.size());
  size_t i = 0;
  for (const double p : points) {
    double mean = 0;
    for (const auto& [task, some] : speeds) {
      double faster = 0;
      for (const double speed : some) faster += speed > p ? 1 : 0;
      mean += faster / static_cast<double>(some.size()) / static_cast<double>(speeds.size());
    }
    EXPECT_EQ(curve[i][0], p);
    EXPECT_NEAR(curve[i][1].get<double>(), mean, 1e-12);
    ++i;
  }
}

TEST(Document, AcceptsAnyContentOfAStore) {
  RunData data = timed_run();
  data.record.name = "\xff";
  data.record.environment = "not JSON";
  data.tasks[0].families = {"\xff"};
  data.answers[0].completion = std::string("\0\xed\xa0\x80", 4);
  for (const char* settings : {"not JSON", "[]", "3", "[1, null]", R"({"samples": -1})"}) {
    data.record.settings = data.prices = settings;
    const Json document = document_of({data});
    EXPECT_EQ(document["runs"][0]["cost"], Json()) << settings;
    EXPECT_TRUE(document["runs"][0]["settings"].is_object()) << settings;
    EXPECT_TRUE(document["runs"][0]["environment"].is_object());
  }
}

TEST(KernelBenchResults, HaveThePassingOrLastTurnOfEachScoredSampleByLevel) {
  RunData data;
  data.judgements = {judged({"kernelbench:1/19", 0, 0}, task::CompileFailed{}),
                     judged({"kernelbench:1/19", 0, 1}, passed_in(25)),
                     judged({"kernelbench:1/19", 0, 2}, task::Wrong{}),
                     judged({"kernelbench:1/19", 1, 0}, task::Unextractable{}),
                     judged({"kernelbench:1/20", 0, 0}, task::Infra{}),
                     judged({"kernelbench:2/3", 0, 0}, task::Wrong{}),
                     judged({"reduction/row_sum", 0, 0}, task::Passed{})};
  const auto levels = kernelbench_results(data);
  ASSERT_EQ(levels.size(), 2U);
  const Json first = Json::parse(levels.at("1"));
  ASSERT_EQ(first.size(), 1U) << "what could not be judged has no entry";
  ASSERT_EQ(first["19"].size(), 2U);
  EXPECT_EQ(first["19"][0]["sample_id"], 0);
  EXPECT_EQ(first["19"][0]["compiled"], true);
  EXPECT_EQ(first["19"][0]["correctness"], true);
  EXPECT_EQ(first["19"][0]["runtime"], 0.025);
  EXPECT_EQ(first["19"][0]["runtime_stats"]["median"], 0.025);
  EXPECT_EQ(first["19"][1]["compiled"], false);
  EXPECT_EQ(first["19"][1]["metadata"]["outcome"], "extraction");
  const Json second = Json::parse(levels.at("2"));
  EXPECT_EQ(second["3"][0]["compiled"], true);
  EXPECT_EQ(second["3"][0]["correctness"], false);
  EXPECT_EQ(second["3"][0]["runtime"], -1.0);
}

TEST(Document, HasAPhraseForVerdictsOfEveryOutcome) {
  RunData data;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Judgement one = judged({"a", static_cast<int64_t>(seed), 0}, task::Infra{});
    one.verdict = task::generate_verdict(seed, seed % std::variant_size_v<task::Outcome>);
    data.judgements.push_back(one);
  }
  const Json document = document_of({data});
  for (const Json& sample : document["runs"][0]["samples"]) {
    EXPECT_LE(sample["phrase"].get<std::string>().size(), 300U);
    EXPECT_EQ(sample["outcome"], sample["verdict"]["outcome"]["kind"]);
  }
}

}  // namespace
}  // namespace mc::bench
