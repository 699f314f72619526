// SPDX-License-Identifier: Apache-2.0
#include "cli/optimize_report.h"

#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace mc::cli {
namespace {

using store::Judgement;
using testing::HasSubstr;

Judgement judgement_with(task::Outcome outcome, std::optional<double> speedup = {}) {
  Judgement judgement;
  judgement.key = {"t", 2, 1};
  if (auto* passed = std::get_if<task::Passed>(&outcome); passed != nullptr && speedup) {
    passed->performance.emplace();
    passed->performance->speedup_eager = {*speedup + 0.5, *speedup, *speedup + 1};
  }
  judgement.verdict.outcome = std::move(outcome);
  return judgement;
}

TEST(OptimizeReport, ASearchEndsWithAFastAnswer) {
  EXPECT_TRUE(ends_search(judgement_with(task::Passed{}, 2.0).verdict, 2));
  EXPECT_FALSE(ends_search(judgement_with(task::Passed{}, 1.9).verdict, 2));
  EXPECT_TRUE(ends_search(judgement_with(task::Passed{}).verdict, 2));  // Nothing is timed.
  EXPECT_FALSE(ends_search(judgement_with(task::Wrong{}).verdict, 2));
}

TEST(OptimizeReport, AVerdictIsALineWithTheBestSoFar) {
  std::optional<double> best;
  EXPECT_EQ(verdict_line(judgement_with(task::Wrong{}), 4, best), "sample 2  turn 2 of 4  wrong");
  EXPECT_EQ(verdict_line(judgement_with(task::Passed{}), 4, best),
            "sample 2  turn 2 of 4  pass         not timed");
  EXPECT_EQ(verdict_line(judgement_with(task::Passed{}, 1.5), 4, best),
            "sample 2  turn 2 of 4  pass         1.50x      best 1.50x");
  EXPECT_EQ(verdict_line(judgement_with(task::Passed{}, 1.25), 4, best),
            "sample 2  turn 2 of 4  pass         1.25x      best 1.50x");
  EXPECT_EQ(best, 1.5);
}

TEST(OptimizeReport, AModuleHasANameThatPythonImports) {
  EXPECT_EQ(module_name("my-net.v2"), "my_net_v2_optimized");
}

std::string winner_text(const Judgement& winner) {
  std::ostringstream out;
  print_winner(out, winner, "optimized/net/net_optimized.py");
  return out.str();
}

TEST(OptimizeReport, TheWinnerIsDescribed) {
  const std::string fast = winner_text(judgement_with(task::Passed{}, 1.5));
  EXPECT_THAT(fast, HasSubstr("t#2.1: correct, "));
  EXPECT_THAT(fast, Not(HasSubstr("not faster")));
  EXPECT_THAT(fast, Not(HasSubstr("not measured")));
  EXPECT_THAT(fast, HasSubstr("\nAt other sizes than the verified ones PyTorch runs.\n"));
  EXPECT_TRUE(
      fast.ends_with("Written: optimized/net/net_optimized.py, with its verdict beside it\n"));
  EXPECT_THAT(winner_text(judgement_with(task::Passed{}, 0.99)),
              HasSubstr("It is not faster than eager PyTorch.\n"));
  EXPECT_THAT(winner_text(judgement_with(task::Passed{}, 1)), Not(HasSubstr("not faster")));
  EXPECT_THAT(winner_text(judgement_with(task::Passed{})),
              HasSubstr("Its speed was not measured: nothing was timed on the cpu backend.\n"));
  Judgement reduced = judgement_with(task::Passed{});
  reduced.verdict.telemetry.reduction.reason = "too large";
  EXPECT_THAT(winner_text(reduced), HasSubstr("It was verified at reduced sizes alone"));
}

TEST(OptimizeReport, AFailureHasTheOutcomes) {
  const auto text = [](const std::vector<Judgement>& all) {
    std::ostringstream out;
    print_failure(out, all, "optimized/net");
    return out.str();
  };
  EXPECT_EQ(text({judgement_with(task::Wrong{}), judgement_with(task::CompileFailed{}),
                  judgement_with(task::Wrong{})}),
            "No answer is correct (1 compile, 2 wrong); musacoder report optimized/net --out "
            "page.html shows them\n");
  EXPECT_THAT(text({}), HasSubstr("(there is none)"));
}

TEST(OptimizeReport, TheEndIsAnEvent) {
  const auto none = nlohmann::json::parse(end_of_search("net", nullptr, ""));
  EXPECT_EQ(none["event"], "end");
  EXPECT_TRUE(none["winner"].is_null());
  EXPECT_FALSE(none.contains("module"));
  const Judgement winner = judgement_with(task::Passed{});
  const auto found = nlohmann::json::parse(end_of_search("net", &winner, "a/b.py"));
  EXPECT_EQ(found["winner"], "t#2.1");
  EXPECT_EQ(found["module"], "a/b.py");
}

}  // namespace
}  // namespace mc::cli
