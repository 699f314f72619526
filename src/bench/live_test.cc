// SPDX-License-Identifier: Apache-2.0
#include "bench/live.h"

#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "bench/figures.h"
#include "core/hash.h"

namespace mc::bench {
namespace {

using store::Judgement;
using Json = nlohmann::json;

Judgement judgement_of(const std::string& task, int64_t sample, int64_t turn,
                       task::Outcome outcome) {
  Judgement out;
  out.key = {task, sample, turn};
  out.verdict.task = task;
  out.verdict.outcome = std::move(outcome);
  return out;
}

TEST(PassRate, IsTheAverageOfTheFiguresAtAnyMoment) {
  const uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const std::vector<task::Outcome> outcomes = {task::Passed{}, task::Wrong{}, task::Unsupported{},
                                               task::Infra{}};
  PassRate rate;
  std::vector<Judgement> all;
  EXPECT_FALSE(rate.figure());
  for (int i = 0; i < 60; ++i) {
    const std::string task(1, static_cast<char>('a' + random() % 5));
    all.push_back(
        judgement_of(task, static_cast<int64_t>(random() % 4), i, outcomes[random() % 4]));
    rate.add(all.back());
    const RunData data{.record = {}, .tasks = {}, .answers = {}, .judgements = all, .prices = {}};
    EXPECT_EQ(rate.figure(),
              report::bench_figures(attempts_of(data, Missing::kFailed), {}).average);
  }
}

TEST(PassRate, IgnoresAFailedAnswerThatAnotherTurnFollows) {
  PassRate rate(/*turns=*/2);
  rate.add(judgement_of("a", 0, 0, task::Wrong{}));
  EXPECT_FALSE(rate.figure());
  rate.add(judgement_of("b", 0, 0, task::Passed{}));
  EXPECT_EQ(rate.figure()->value, 1);
  rate.add(judgement_of("a", 0, 1, task::Wrong{}));
  EXPECT_EQ(rate.figure()->value, 0.5);
}

LiveState state_of() {
  LiveState state;
  state.loop.num_verdicts = 12;
  state.loop.num_answers = 15;
  state.loop.num_waiting = 3;
  state.loop.num_asked = 6;
  state.loop.num_sampling = 4;
  state.loop.num_failed = 1;
  state.num_before = 3;
  state.num_preparing = 1;
  state.num_measuring = 1;
  state.elapsed_s = 20;
  return state;
}

TEST(LiveState, HasItsCountsInALine) {
  LiveState state = state_of();
  EXPECT_EQ(line_of(state), "sampling 4, preparing 1, measuring 1, without an answer 1, judged 12");
  state.pass_rate = report::Figure{.value = 0.5, .interval = {0.25, 0.75}, .num_tasks = 4};
  state.loop.num_sampling = state.loop.num_failed = 0;
  state.num_preparing = state.num_measuring = 0;
  EXPECT_EQ(line_of(state), "pass 50.0 % [25.0, 75.0], judged 12");
}

TEST(LiveState, CountsOnlyTheWorkOfThisCommand) {
  const LiveWork work = work_of(state_of());
  EXPECT_EQ(work.done, 10);  // 12 - 3 verdicts, and one request without an answer.
  // In addition, 6 answers are not yet received and 3 are not yet judged.
  EXPECT_EQ(work.total, 19);
}

TEST(Events, ProgressHasEachStageOnce) {
  const Json event = Json::parse(progress_event("m", state_of()));
  const Json expected = {{"event", "progress"}, {"version", 1},   {"run", "m"},
                         {"elapsed_s", 20.0},   {"left_s", 18.0}, {"queued", 2},
                         {"sampling", 4},       {"waiting", 1},   {"preparing", 1},
                         {"measuring", 1},      {"judged", 12},   {"failed", 1},
                         {"pass_rate", nullptr}};
  EXPECT_EQ(event, expected);
  LiveState nothing;
  EXPECT_EQ(Json::parse(progress_event("m", nothing))["left_s"], nullptr);
  // The verdict is stored, but the thread has not yet decremented the count.
  nothing.num_preparing = 1;
  EXPECT_EQ(Json::parse(progress_event("m", nothing))["waiting"], 0);
}

TEST(Events, SampleHasASummaryOfTheVerdict) {
  Judgement one =
      judgement_of("1/19", 2, 1, task::Wrong{.q = 0.5, .specialised = false, .trials = {}});
  one.reward = -0.25;
  one.seconds = 1.5;
  const Json event = Json::parse(sample_event("a \"run\"\n", one));
  const Json expected = {{"event", "sample"},  {"version", 1},       {"run", "a \"run\"\n"},
                         {"task", "1/19"},     {"sample", 2},        {"turn", 1},
                         {"outcome", "wrong"}, {"q", 0.5},           {"reward", -0.25},
                         {"seconds", 1.5},     {"speedup", nullptr}, {"phrase", ""}};
  EXPECT_EQ(event, expected);
  task::Passed passed;
  passed.performance.emplace().speedup_eager = {.median = 2, .low = 1.5, .high = 2.5};
  one.verdict.outcome = passed;
  EXPECT_EQ(Json::parse(sample_event("m", one))["speedup"],
            (Json{{"value", 2.0}, {"low", 1.5}, {"high", 2.5}, {"uncertain", false}}));
}

TEST(Events, AreOneLineEachWithAnyTexts) {
  const std::string end = end_event("m", "{\n  \"summary\": {\n \"missing\": 3}\n}\n");
  EXPECT_EQ(std::ranges::count(end, '\n'), 1);
  EXPECT_EQ(Json::parse(end)["summary"]["missing"], 3);
  const std::string failure = failure_event("m", "two\nlines \xff");
  EXPECT_EQ(std::ranges::count(failure, '\n'), 1);
  EXPECT_EQ(Json::parse(failure)["event"], "end");
}

}  // namespace
}  // namespace mc::bench
