// SPDX-License-Identifier: Apache-2.0
#include "execute/decode.h"

#include <gmock/gmock.h>

#include <cmath>

namespace mc::execute {
namespace {

task::Place nowhere(std::string_view, uint64_t) { return {}; }

TEST(Decode, CutsLongTexts) {
  const std::string message(100000, 'x');
  const auto refusal =
      decode_refusal(R"({"ok": false, "error": {"kind": "exception", "type": "E", "message": ")" +
                     message + "\"}}");
  ASSERT_TRUE(refusal);
  EXPECT_LE(refusal->exception.message.size(), 4096u);
}

TEST(Decode, RefusesMembersOfTheWrongType) {
  EXPECT_FALSE(decode_refusal(R"({"ok": false})"));
  EXPECT_FALSE(decode_refusal(R"({"ok": false, "error": {"type": 5}})"));
  EXPECT_FALSE(decode_run(R"({"ok": true})"));
  EXPECT_FALSE(decode_run(R"({"outputs": {}, "sticky": 3})"));
  EXPECT_FALSE(decode_run(R"({"outputs": {}, "aten": {"aten::mm": {}}})"));
  EXPECT_FALSE(decode_run(R"({"outputs": {}, "launches": "1"})"));
  EXPECT_FALSE(decode_plan("not json"));
}

TEST(Decode, ReadsNumbersThatJsonCannotWrite) {
  task::Trial trial;
  ASSERT_TRUE(decode_check(
      R"({"passed": false, "checks": [{"path": "output", "problem": "value", "error_max": "inf",
          "error_tolerance": "nan", "num_wrong": 2,
          "first_mismatches": [{"index": [1, 2], "expected": "1", "got": "nan"}]}]})",
      trial));
  ASSERT_EQ(trial.checks.size(), 1u);
  EXPECT_TRUE(std::isinf(trial.checks[0].error_max));
  EXPECT_TRUE(std::isnan(trial.checks[0].error_tolerance));
  EXPECT_THAT(trial.checks[0].first_mismatches[0].index, ::testing::ElementsAre(1, 2));
}

TEST(Decode, PassesOverReportLinesThatAreScribbledOver) {
  const auto findings = decode_findings(
      "garbage\n{\"kind\": \"shared_race\", \"kernel\": \"k\", \"thread\": [1, 0, 0]}\n"
      "{\"kind\": 5}\n{\"kind\": \"late\", \"block\": " +
          std::string(60000, '[') + std::string(60000, ']') + "}\n{\"kind\": \"deadlock\"",
      nowhere);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, "shared_race");
  EXPECT_EQ(findings[0].thread[0], 1);
}

TEST(Decode, PlacesBothSidesOfARace) {
  const Locate by_pc = [](std::string_view, uint64_t pc) {
    return task::Place{"candidate", static_cast<int>(pc), 0, ""};
  };
  const auto findings = decode_findings(
      "{\"kind\": \"shared_race\", \"pc\": 31, \"other_pc\": 28}\n"
      "{\"kind\": \"global_race\", \"pc\": 5, \"other_pc\": 0}\n",
      by_pc);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].place.line, 31);
  EXPECT_EQ(findings[0].other.line, 28);
  EXPECT_EQ(findings[1].other, task::Place{});
}

TEST(Decode, ReadsHowTheStateMatches) {
  const auto state = decode_state(
      R"({"ok": true, "missing": ["w: float32 [2]"], "unmatched": [], "own": ["v: float32 [2]"]})");
  ASSERT_TRUE(state);
  EXPECT_EQ(*state, (task::StateMatch{{"w: float32 [2]"}, {}, {"v: float32 [2]"}}));
  for (const char* text : {"{}", R"({"ok": true, "missing": [], "unmatched": []})",
                           R"({"ok": true, "missing": [5], "unmatched": [], "own": []})",
                           R"({"ok": true, "missing": [], "unmatched": [], "own": [], "x": 1})"}) {
    EXPECT_FALSE(decode_state(text)) << text;
  }
}

TEST(Decode, BoundsTheNumberOfFindings) {
  std::string report;
  for (int i = 0; i < 10000; ++i) report += "{\"kind\": \"shared_race\"}\n";
  EXPECT_LE(decode_findings(report, nowhere).size(), 64u);
}

}  // namespace
}  // namespace mc::execute
