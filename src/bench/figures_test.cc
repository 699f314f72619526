// SPDX-License-Identifier: Apache-2.0
#include "bench/figures.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file.h"

namespace mc::bench {
namespace {

using store::Answer;
using store::Judgement;
using testing::ElementsAre;

Judgement judged_at(store::AnswerKey key, task::Outcome outcome) {
  Judgement one{.key = std::move(key), .reward = {}, .verdict = {}};
  one.verdict.task = one.key.id;
  one.verdict.outcome = std::move(outcome);
  return one;
}

// Two tasks with a level and one without; task "c" has no answer.
RunData data_of(const std::string& settings) {
  RunData data;
  data.record.settings = settings;
  data.tasks = {{"a", "level 1", {"softmax", "fused"}, ""},
                {"b", "level 1", {"softmax"}, ""},
                {"c", "", {}, ""}};
  for (const store::AnswerKey& key :
       {store::AnswerKey{"a", 0, 0}, {"a", 0, 1}, {"a", 1, 0}, {"b", 0, 0}}) {
    data.answers.push_back({.key = key, .completion = "x"});
  }
  data.judgements = {judged_at({"a", 0, 0}, task::Wrong{}), judged_at({"a", 0, 1}, task::Passed{}),
                     judged_at({"a", 1, 0}, task::Wrong{}), judged_at({"b", 0, 0}, task::Passed{})};
  return data;
}

TEST(Coverage, CountsTheWantedSamples) {
  const struct {
    std::string settings;
    Coverage coverage;
  } kTable[] = {
      {R"({"samples": 2})", {6, 3, 3, true}},  // One sample of b and two of c are missing.
      {R"({"samples": 1})", {4, 3, 1, true}},
      {R"({"samples": 2, "turns": 2})", {6, 2, 3, true}},  // One of a has one turn only.
      {R"({"samples": 2, "turns": 2, "also": "strict"})", {6, 3, 3, true}},
      {R"({"samples": 0})", {4, 3, 1, false}},  // Stored answers; task "c" has none.
      {"{}", {4, 3, 1, false}},
      {R"({"samples": "many"})", {4, 3, 1, false}},
      {"not JSON", {4, 3, 1, false}}};
  for (const auto& row : kTable) {
    EXPECT_EQ(coverage_of(data_of(row.settings)), row.coverage) << row.settings;
  }
}

TEST(Coverage, HasNoLineForARunThatIsComplete) {
  EXPECT_EQ(coverage_text({4, 4, 0, true}, Missing::kFailed), "");
  EXPECT_EQ(coverage_text({47, 28, 15, true}, Missing::kFailed),
            "unfinished: 28 of 47 samples have their verdict; the others, 15 without an answer and "
            "4 waiting for a verdict or a turn, count as failed (--missing left-out: are in no "
            "figure)");
  EXPECT_EQ(coverage_text({270, 4, 266, false}, Missing::kLeftOut),
            "4 of 270 samples have their verdict; the others, 266 without an answer, are in no "
            "figure (--missing failed: count as failed)");
}

TEST(Figures, CountAnIncompleteSampleAsFailedOrLeaveItOut) {
  RunData data = data_of(R"({"samples": 2, "turns": 2})");
  // An answer whose verdict is pending.
  data.answers.push_back({.key = {"b", 1, 0}, .completion = "x"});
  const report::BenchFigures failed = rows_of(data, Missing::kFailed).at(0).figures;
  EXPECT_EQ(failed.num_tasks, 3);
  EXPECT_EQ(failed.num_samples, 6);
  EXPECT_EQ(failed.num_missing, 3);
  EXPECT_EQ(failed.num_attempts, 4);
  EXPECT_EQ(failed.pass_at.at(1).value, (0.5 + 0.5 + 0) / 3);
  const report::BenchFigures left_out = rows_of(data, Missing::kLeftOut).at(0).figures;
  EXPECT_EQ(left_out.num_tasks, 2);
  // A sample is pending if its first turn failed and its second is missing.
  EXPECT_EQ(left_out.num_samples, 2);
  EXPECT_EQ(left_out.num_missing, 0);
  EXPECT_EQ(left_out.pass_at.at(1).value, 1);
  EXPECT_THAT(pending_of(data), testing::ElementsAre(testing::Pair("a", 1), testing::Pair("b", 1)));
}

TEST(Figures, HaveARowForAllTasksAndForEachLevelAndFamily) {
  const std::vector<report::BenchRow> rows = rows_of(data_of("{}"), Missing::kLeftOut);
  std::vector<std::string> names;
  for (const report::BenchRow& row : rows) names.push_back(row.name);
  EXPECT_THAT(names, ElementsAre("all", "family fused", "family softmax", "level 1"));
  const report::BenchFigures& all = rows.at(0).figures;
  EXPECT_EQ(all.num_tasks, 2);
  EXPECT_EQ(all.num_attempts, 4);
  EXPECT_EQ(all.num_samples, 3);
  EXPECT_EQ(all.num_passed, 2);
  // One of two samples of a task passes, and the only sample of another.
  EXPECT_EQ(all.average->value, (0.5 + 1) / 2);
  EXPECT_EQ(all.first_turn->value, (0. + 1) / 2);
  EXPECT_EQ(all.pass_at.at(1).value, (0.5 + 1) / 2);
  EXPECT_EQ(all.pass_at.at(2).value, 1);  // Only "a" has two samples.
  EXPECT_EQ(rows.at(1).figures.num_tasks, 1);
}

TEST(Figures, WithoutAnswersHaveARowForAllTasks) {
  RunData data = data_of("{}");
  data.judgements.clear();
  const auto rows = rows_of(data, Missing::kLeftOut);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].figures.num_attempts, 0);
  EXPECT_FALSE(rows[0].figures.average);
}

TEST(Figures, HaveThePricesOfTheLastCommandOrFromOldSettings) {
  const auto folder = TemporaryDirectory::create("figures");
  ASSERT_TRUE(folder);
  const auto store = store::Store::open(folder->path() / "store.sqlite");
  ASSERT_TRUE(store);
  auto run = (*store)->begin({.name = "m", .kind = "bench", .settings = R"({"prices":[1,2]})"});
  ASSERT_TRUE(run);
  EXPECT_EQ(read_run(*run)->prices, "[1,2]");
  ASSERT_TRUE(run->put(kPricesName, "[3,4]"));
  EXPECT_EQ(read_run(*run)->prices, "[3,4]");
  EXPECT_TRUE((*store)->begin({.name = "m", .kind = "bench", .settings = "{}"}))
      << "prices are no part of what a run is";
}

TEST(Figures, AreReadFromAStore) {
  const auto folder = TemporaryDirectory::create("figures");
  ASSERT_TRUE(folder);
  const auto store = store::Store::open(folder->path() / "store.sqlite");
  ASSERT_TRUE(store);
  const RunData data = data_of(R"({"samples":2})");
  auto run = (*store)->begin({.name = "m", .kind = "bench", .settings = data.record.settings});
  ASSERT_TRUE(run);
  ASSERT_TRUE(run->set_tasks(data.tasks));
  ASSERT_TRUE(run->add(data.answers));
  for (const Judgement& one : data.judgements) ASSERT_TRUE(run->add(one));
  const auto again = read_run(*run);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->record.name, "m");
  EXPECT_EQ(again->tasks, data.tasks);
  EXPECT_EQ(again->answers, data.answers);
  ASSERT_EQ(again->judgements.size(), data.judgements.size());
  for (size_t i = 0; i < data.judgements.size(); ++i) {
    EXPECT_EQ(again->judgements[i].verdict, data.judgements[i].verdict);
  }
}

}  // namespace
}  // namespace mc::bench
