// SPDX-License-Identifier: Apache-2.0
#include "execute/decode.h"

#include <gmock/gmock.h>

#include <cmath>

#include "execute/children.h"

namespace mc::execute {
namespace {

task::SourceLocation nowhere(std::string_view, uint64_t, std::string_view) { return {}; }

TEST(Decode, CutsLongTexts) {
  const std::string message(100000, 'x');
  const auto refusal =
      decode_refusal(R"({"ok": false, "error": {"kind": "exception", "type": "E", "message": ")" +
                     message + "\"}}");
  ASSERT_TRUE(refusal);
  EXPECT_LE(refusal->exception.message.size(), 4096u);
}

TEST(Decode, RejectsAnErrorReplyWithoutAnError) {
  EXPECT_FALSE(decode_refusal(R"({"ok": false})"));
  EXPECT_FALSE(decode_refusal(R"({"ok": false, "error": {"type": 5}})"));
}

TEST(Decode, BoundsTheAnswerOfARun) {
  worker::CandidateRunResponse response{.sticky = std::string(100000, 'x')};
  for (int i = 0; i < 1000; ++i) response.aten[std::to_string(i) + std::string(1000, 'n')] = i;
  const auto run = bounded(std::move(response));
  EXPECT_EQ(run.sticky.size(), 4096u);
  EXPECT_EQ(run.aten.size(), 256u);
  for (const auto& [name, count] : run.aten) EXPECT_EQ(name.size(), 200u);
}

TEST(Decode, CopiesACheckIntoATrial) {
  task::Trial trial;
  const worker::OutputCheck check{.path = "output",
                                  .problem = "value",
                                  .num_wrong = 2,
                                  .error_max = INFINITY,
                                  .first_mismatches = {{{{1, 2}, "1", "nan"}}},
                                  .histogram = {{{"1-10", 2}}},
                                  .diagnosis = "All elements are zero."};
  take_check({false, {check, {.path = std::string(5000, 'p')}}, "x"}, trial);
  EXPECT_FALSE(trial.passed);
  EXPECT_EQ(trial.inputs_mutated, "x");
  ASSERT_EQ(trial.checks.size(), 2u);
  EXPECT_TRUE(std::isinf(trial.checks[0].error_max));
  EXPECT_EQ(trial.checks[0].num_wrong, 2);
  EXPECT_EQ(trial.checks[0].num_elements, 0);
  EXPECT_THAT(trial.checks[0].first_mismatches.at(0).index, ::testing::ElementsAre(1, 2));
  EXPECT_EQ(trial.checks[0].histogram.at("1-10"), 2);
  EXPECT_EQ(trial.checks[0].diagnosis, "All elements are zero.");
  EXPECT_EQ(trial.checks[1].diagnosis, "");
  EXPECT_EQ(trial.checks[1].path.size(), 4096u);
}

TEST(Decode, BoundsTheNumberOfChecks) {
  task::Trial trial;
  take_check({false, std::vector<worker::OutputCheck>(1000), ""}, trial);
  EXPECT_EQ(trial.checks.size(), 64u);
}

TEST(Decode, ReadsAPlan) {
  const JudgePlan plan =
      plan_of({{7, 6, 5, 4},
               true,
               true,
               "eval",
               {"weak", {"why"}},
               {{"native", {{"N", 4}}, {}}, {"reduced", {}, {{{{"N", 8}}, {{"N", 2}}, "large"}}}},
               {{0, 0, "native"}, {1, 1, "signed"}}});
  EXPECT_EQ(plan.call_memory.inputs, 7);
  EXPECT_TRUE(plan.needs_general);
  EXPECT_TRUE(plan.only_moves);
  EXPECT_EQ(plan.mode, "eval");
  EXPECT_EQ(plan.grade, (task::TaskGrade{"weak", {"why"}}));
  ASSERT_EQ(plan.shapes.size(), 2u);
  EXPECT_EQ(plan.shapes[0].constants.at("N"), 4);
  EXPECT_EQ(plan.shapes[0].reduction, task::Reduction());
  EXPECT_EQ(plan.shapes[1].reduction, (task::Reduction{{{"N", 8}}, {{"N", 2}}, "large"}));
  ASSERT_EQ(plan.trials.size(), 2u);
  EXPECT_EQ(plan.trials[1].shape, 1);
  EXPECT_EQ(plan.trials[1].distribution, "signed");
}

TEST(Decode, ReadsAnInspection) {
  const worker::Finding finding{"python.x", "use of x", 3, 4, std::string(1000, 't')};
  const Inspection clean = inspection_of({std::nullopt, {"Model"}, {"get_inputs"}, {finding}, {}});
  EXPECT_EQ(clean.syntax_error, "");
  EXPECT_THAT(clean.classes, ::testing::ElementsAre("Model"));
  ASSERT_EQ(clean.findings.size(), 1u);
  EXPECT_EQ(clean.findings[0].location,
            (task::SourceLocation{"candidate", 3, 4, std::string(200, 't')}));
  const Inspection broken =
      inspection_of({worker::SyntaxError{"invalid", 2, 1, "if"}, {}, {}, {}, {}});
  EXPECT_EQ(broken.syntax_error, "invalid");
  EXPECT_EQ(broken.syntax_location, (task::SourceLocation{"candidate", 2, 1, "if"}));
}

TEST(Decode, IgnoresOverwrittenReportLines) {
  const auto findings = decode_findings(
      "garbage\n{\"kind\": \"shared_race\", \"kernel\": \"k\", \"thread\": [1, 0, 0]}\n"
      "{\"kind\": 5}\n{\"kind\": \"late\", \"block\": " +
          std::string(60000, '[') + std::string(60000, ']') + "}\n{\"kind\": \"deadlock\"",
      nowhere);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, "shared_race");
  EXPECT_EQ(findings[0].thread[0], 1);
}

TEST(Decode, LocatesAFindingByItsLine) {
  const Locate by_line = [](std::string_view file, uint64_t line, std::string_view) {
    return task::SourceLocation{std::string(file), static_cast<int>(line), 0, ""};
  };
  const auto findings = decode_findings(
      "{\"kind\": \"shared_race\", \"file\": \"a.cu\", \"line\": 31}\n"
      "{\"kind\": \"global_race\", \"file\": \"\", \"line\": 0}\n",
      by_line);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].location, (task::SourceLocation{"a.cu", 31, 0, ""}));
  EXPECT_EQ(findings[1].location, task::SourceLocation{});
}

TEST(Decode, ReadsHowTheStateMatches) {
  const std::string name = "w: float32 [2]";
  EXPECT_EQ(state_of({{name}, {}, {"v"}}), (task::StateMatch{{name}, {}, {"v"}}));
  const task::StateMatch long_ones =
      state_of({std::vector<std::string>(1000, std::string(1000, 'n')), {}, {}});
  EXPECT_EQ(long_ones.missing.size(), 64u);
  EXPECT_EQ(long_ones.missing[0].size(), 200u);
}

TEST(Decode, BoundsTheNumberOfFindings) {
  std::string report;
  for (int i = 0; i < 10000; ++i) report += "{\"kind\": \"shared_race\"}\n";
  EXPECT_LE(decode_findings(report, nowhere).size(), 64u);
}

}  // namespace
}  // namespace mc::execute
