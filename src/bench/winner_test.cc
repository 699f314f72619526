// SPDX-License-Identifier: Apache-2.0
#include "bench/winner.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/sampling_loop.h"
#include "core/file.h"
#include "store/store.h"

namespace mc::bench {
namespace {

using store::Judgement;
using testing::ElementsAre;
using testing::HasSubstr;

task::Trial trial(int index, const std::string& shape, bool is_passed) {
  task::Trial out;
  out.index = index;
  out.shape = shape;
  out.passed = is_passed;
  return out;
}

task::Verdict passed(double speedup, const std::string& other_shape = "ragged") {
  task::Passed outcome;
  outcome.trials = {trial(0, "native", true)};
  if (!other_shape.empty()) outcome.trials.push_back(trial(1, other_shape, true));
  if (speedup > 0) {
    outcome.performance.emplace();
    outcome.performance->speedup_eager = {speedup + 0.1, speedup, speedup + 0.2};
  }
  task::Verdict verdict;
  verdict.outcome = std::move(outcome);
  return verdict;
}

task::Verdict not_general(double speedup) {
  task::Verdict verdict = passed(speedup);
  std::get<task::Passed>(verdict.outcome).generality = 0.5;
  return verdict;
}

task::Verdict wrong() {
  task::Verdict verdict;
  verdict.outcome = task::Wrong{.q = 0.5, .trials = {trial(0, "native", false)}};
  return verdict;
}

// The verdicts of one sample, one for each turn.
std::vector<Judgement> turns(std::vector<task::Verdict> verdicts) {
  std::vector<Judgement> out;
  for (task::Verdict& verdict : verdicts) {
    Judgement judgement;
    judgement.key = {"task", 0, static_cast<int64_t>(out.size())};
    judgement.verdict = std::move(verdict);
    out.push_back(std::move(judgement));
  }
  return out;
}

int64_t winning_turn(std::vector<task::Verdict> verdicts) {
  const std::vector<Judgement> all = turns(std::move(verdicts));
  const Judgement* winner = winner_of(all);
  return winner == nullptr ? -1 : winner->key.turn;
}

TEST(Winner, IsTheFastestCorrectAnswer) {
  EXPECT_EQ(winning_turn({wrong(), passed(1.2), passed(1.9), passed(1.5)}), 2);
}

TEST(Winner, IsMissingIfNoAnswerIsCorrect) {
  EXPECT_EQ(winning_turn({wrong(), wrong()}), -1);
  EXPECT_EQ(winning_turn({}), -1);
}

TEST(Winner, IsComparedByTheLowerEndOfItsInterval) {
  task::Verdict noisy = passed(1.1);
  std::get<task::Passed>(noisy.outcome).performance->speedup_eager = {3, 1.1, 9};
  EXPECT_EQ(winning_turn({passed(1.5), noisy}), 0);
}

TEST(Winner, IsTheEarliestIfNothingWasTimed) {
  EXPECT_EQ(winning_turn({wrong(), passed(0), passed(0)}), 1);
}

TEST(Winner, IsGeneralRatherThanEarlyIfNothingWasTimed) {
  EXPECT_EQ(winning_turn({not_general(0), passed(0)}), 1);
}

TEST(Winner, IsATimedAnswerIfThereIsOne) { EXPECT_EQ(winning_turn({passed(0), passed(0.5)}), 1); }

TEST(Winner, IsNoAnswerToATaskThatAnyConstantPasses) {
  task::Verdict trivial = passed(5);
  trivial.task_grade.grade = "trivial";
  EXPECT_EQ(winning_turn({trivial, passed(1.1)}), 1);
}

TEST(Winner, IsGeneralOnlyIfOtherSizesWereTried) {
  EXPECT_TRUE(is_general(passed(1, "small")));
  EXPECT_FALSE(is_general(passed(1, "")));
  EXPECT_FALSE(is_general(passed(1, "reduced")));
  EXPECT_FALSE(is_general(not_general(1)));
  EXPECT_FALSE(is_general(wrong()));
}

// ---- A loop that looks for speed --------------------------------------------------------------

// A sampler that answers each turn with the turn's number, and records the requests.
class NumberingSampler final : public Sampler {
 public:
  bool takes_all() const override { return true; }
  Result<std::vector<Result<store::Answer>>> ask(std::span<const Request> requests) override {
    std::vector<Result<store::Answer>> answers;
    for (const Request& request : requests) {
      asked.push_back(request.messages.back().content);
      answers.push_back(
          store::Answer{.key = request.key,
                        .completion = std::to_string(request.key.sample * 10 + request.key.turn)});
    }
    return answers;
  }
  std::vector<std::string> asked;
};

// An evaluator with a fixed verdict for each answer.
class KnownVerdicts final : public task::Evaluator {
 public:
  explicit KnownVerdicts(std::map<std::string, task::Verdict> verdicts)
      : verdicts_(std::move(verdicts)) {}
  task::Verdict evaluate(const task::Task&, const task::Candidate& candidate) override {
    return verdicts_.at(candidate.answer);
  }

 private:
  const std::map<std::string, task::Verdict> verdicts_;
};

class CourseForSpeed : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = TemporaryDirectory::create("loop");
    ASSERT_TRUE(folder);
    folder_ = std::make_unique<TemporaryDirectory>(std::move(*folder));
    auto opened = store::Store::open(folder_->path() / "store.sqlite");
    ASSERT_TRUE(opened);
    store_ = std::move(*opened);
  }

  // The winner's turn, after a loop with one sample.
  int64_t run(std::map<std::string, task::Verdict> verdicts, SamplingOptions options) {
    auto run = store_->begin({.name = "m", .kind = "optimize", .settings = "{}"});
    options.goes_on_after_pass = true;
    options.judges = 1;
    const std::vector<sample::Item> items = {{{"task", "task", ""}, {{"user", "Prompt."}}, "", {}}};
    KnownVerdicts evaluator(std::move(verdicts));
    const SamplingLoop loop(*run, items, options, [&](const SamplingProgress& progress) {
      if (progress.judgement != nullptr) seen_.push_back(progress.judgement->key.turn);
      if (observer_) observer_(progress);
    });
    const auto end = loop.run(&sampler_, evaluator);
    EXPECT_TRUE(end);
    const auto all = run->judgements();
    EXPECT_TRUE(all);
    const Judgement* winner = winner_of(*all);
    return winner == nullptr ? -1 : winner->key.turn;
  }

  std::unique_ptr<TemporaryDirectory> folder_;
  std::unique_ptr<store::Store> store_;
  NumberingSampler sampler_;
  SamplingLoop::Observer observer_;
  std::vector<int64_t> seen_;
};

TEST_F(CourseForSpeed, ContinuesAfterAPassAndFindsTheFasterKernel) {
  const int64_t turn = run(
      {{"0", wrong()}, {"1", passed(1.2)}, {"2", passed(1.8)}, {"3", passed(1.4)}}, {.turns = 4});
  EXPECT_EQ(turn, 2);
  EXPECT_THAT(seen_, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(sampler_.asked,
              ElementsAre("Prompt.", HasSubstr("Write the whole answer again"),
                          HasSubstr("Make them faster"), HasSubstr("Make them faster")));
}

TEST_F(CourseForSpeed, StopsRequestsWhenThereIsEnough) {
  bool is_enough = false;
  observer_ = [&](const SamplingProgress& progress) {
    if (progress.judgement == nullptr) return;
    is_enough = is_enough || speedup_of(progress.judgement->verdict).value_or(0) >= 1.5;
  };
  const int64_t turn = run({{"0", passed(1.2)}, {"1", passed(1.8)}},
                           {.turns = 9, .is_enough = [&] { return is_enough; }});
  EXPECT_EQ(turn, 1);
  EXPECT_EQ(sampler_.asked.size(), 2);
}

TEST_F(CourseForSpeed, RequestsNothingIfThereIsEnoughAtTheStart) {
  EXPECT_EQ(run({}, {.turns = 3, .is_enough = [] { return true; }}), -1);
  EXPECT_TRUE(sampler_.asked.empty());
}

TEST_F(CourseForSpeed, ResumesAPassedSampleIfMoreTurnsAreWanted) {
  const std::map<std::string, task::Verdict> verdicts = {{"0", passed(1.2)}, {"1", passed(1.8)}};
  EXPECT_EQ(run(verdicts, {.turns = 1}), 0);
  EXPECT_EQ(run(verdicts, {.turns = 2}), 1);
  EXPECT_EQ(sampler_.asked.size(), 2);
}

}  // namespace
}  // namespace mc::bench
