// SPDX-License-Identifier: Apache-2.0
#include "cli/check_report.h"

#include <string>

#include <gmock/gmock.h>

#include "cli/commands.h"
#include "reward/hints.h"

namespace mc::cli {
namespace {

using testing::HasSubstr;

check::Checked checked_program() {
  check::Checked checked;
  checked.ending = sandbox::Exited{.code = 0};
  checked.findings = {{.kind = "shared_race",
                       .kernel = "sum(float*)",
                       .block = {1, 2, 3},
                       .thread = {4, 5, 6},
                       .detail = "two threads write s[0]",
                       .location = {.source = "a.cu", .line = 12}},
                      {.kind = "launch_error",
                       .kernel = "sum(float*)",
                       .detail = "2048 threads",
                       .location = {.source = "/b.cu", .line = 0}},
                      {.kind = "stream_race", .kernel = "[host]", .detail = "no event"},
                      {.kind = "out_of_bounds_read", .kernel = "[memset]", .detail = "too long"}};
  checked.unsupported = {"surfaces"};
  checked.launches = 3;
  checked.profile =
      R"({"kernel": "sum", "launches": 2, "threads": 64,)"
      R"("loads": {"requests": 4, "sectors": 10}, "stores": {"requests": 2, "sectors": 2},)"
      R"("atomics": {"requests": 0, "sectors": 0}, "shared_passes": 6, "shared_passes_least": 4,)"
      R"("lanes": 48, "instructions": 2, "occupancy": 0.5})"
      "\nnot JSON\n";
  return checked;
}

std::string printed(const nlohmann::json& report) {
  testing::internal::CaptureStdout();
  print_check_report(report, "the program ended with exit code 0");
  return testing::internal::GetCapturedStdout();
}

TEST(CheckReport, HasTheFindingsOfARun) {
  const auto report = check_report(checked_program());
  EXPECT_EQ(report["schema"], "musacoder-check/1");
  EXPECT_EQ(report["launches"], 3);
  EXPECT_EQ(report["unsupported"], nlohmann::json({"surfaces"}));
  ASSERT_EQ(report["findings"].size(), 4U);
  const auto& first = report["findings"][0];
  EXPECT_EQ(first["kind"], "shared_race");
  EXPECT_EQ(first["kernel"], "sum(float*)");
  EXPECT_EQ(first["file"], "a.cu");
  EXPECT_EQ(first["line"], 12);
  EXPECT_EQ(first["block"], nlohmann::json({1, 2, 3}));
  EXPECT_EQ(first["thread"], nlohmann::json({4, 5, 6}));
  EXPECT_EQ(first["detail"], "two threads write s[0]");
  EXPECT_EQ(first["hint"], reward::kernel_hint("shared_race"));
  ASSERT_EQ(report["profile"].size(), 1U);  // A line that is no JSON is left out.
  const auto& kernel = report["profile"][0];
  EXPECT_EQ(kernel["sectors"], 12);
  EXPECT_EQ(kernel["loads"]["sectors_per_request"], 2.5);
  EXPECT_EQ(kernel["stores"]["sectors_per_request"], 1);
  EXPECT_EQ(kernel["atomics"]["sectors_per_request"], 0);
  EXPECT_EQ(kernel["bank_conflicts"], 1.5);
  EXPECT_EQ(kernel["lanes_per_instruction"], 24);
}

TEST(CheckReport, IsPrintedForPeople) {
  testing::internal::CaptureStderr();
  const std::string text = printed(check_report(checked_program()));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "musacoder: not checked to its end, for what the device lacks: surfaces\n");
  EXPECT_THAT(text, HasSubstr("a.cu:12: shared_race in sum(float*)\n"
                              "    block (1,2,3), thread (4,5,6): two threads write s[0]\n"
                              "    hint: "));
  // A finding of the host names no thread.
  EXPECT_THAT(text, HasSubstr("/b.cu:0: launch_error in sum(float*)\n    2048 threads\n"));
  EXPECT_THAT(text, HasSubstr("\nstream_race in [host]\n    no event\n"));
  EXPECT_THAT(text, HasSubstr("\nout_of_bounds_read in [memset]\n    too long\n"));
  EXPECT_THAT(text, HasSubstr("kernel                   launches    threads    sectors  a load "
                              "a store  atomic  a pass  lanes occupancy\n"
                              "sum                             2         64         12     2.5 "
                              "    1.0       -     1.5   24.0       50%\n"));
  EXPECT_TRUE(text.ends_with("== 4 findings in 3 launches; the program ended with exit code 0\n"));
  check::Checked empty;
  empty.launches = 1;
  EXPECT_EQ(printed(check_report(empty)),
            "== 0 findings in 1 launch; the program ended with exit code 0\n");
}

TEST(CheckReport, CountsHaveTheirNouns) {
  EXPECT_EQ(counted(1, "finding"), "1 finding");
  EXPECT_EQ(counted(0, "finding"), "0 findings");
  EXPECT_EQ(counted(2, "launch"), "2 launches");
}

TEST(CheckReport, OfSeveralRunsHasEachFindingOnce) {
  const auto one = check_report(checked_program());
  check::Checked other = checked_program();
  other.findings[0].location.line = 13;
  other.unsupported.emplace_back("textures");
  const auto whole = merged_report({one, check_report(other), one});
  EXPECT_EQ(whole["schema"], "musacoder-check/1");
  EXPECT_EQ(whole["launches"], 9);
  EXPECT_EQ(whole["findings"].size(), 5U);
  EXPECT_EQ(whole["unsupported"], nlohmann::json({"surfaces", "textures"}));
  EXPECT_EQ(whole["profile"].size(), 3U);
  EXPECT_EQ(merged_report({})["launches"], 0);
}

TEST(CheckReport, DecidesTheExitCode) {
  nlohmann::json report = merged_report({});
  EXPECT_EQ(check_exit_code(report, true), kExitDone);
  EXPECT_EQ(check_exit_code(report, false), kExitMachine);
  report["unsupported"].push_back("surfaces");
  EXPECT_EQ(check_exit_code(report, true), kExitInput);
  report["findings"].push_back("one");
  EXPECT_EQ(check_exit_code(report, true), kExitFound);
}

TEST(CheckReport, IsWrittenAsSarif) {
  check::Checked checked = checked_program();
  checked.findings.push_back(checked.findings[0]);
  checked.findings.back().kind = "a kind without a hint";
  const auto sarif = sarif_of(check_report(checked));
  EXPECT_EQ(sarif["version"], "2.1.0");
  const auto& run = sarif["runs"][0];
  EXPECT_EQ(run["tool"]["driver"]["name"], "musacoder check");
  const auto& rules = run["tool"]["driver"]["rules"];
  ASSERT_EQ(rules.size(), 5U);  // One for each kind.
  EXPECT_EQ(rules[0]["id"], "shared_race");
  EXPECT_EQ(rules[0]["shortDescription"]["text"], reward::kernel_hint("shared_race"));
  EXPECT_EQ(rules[4]["shortDescription"]["text"], "a kind without a hint");
  const auto& results = run["results"];
  ASSERT_EQ(results.size(), 5U);
  EXPECT_EQ(results[0]["ruleId"], "shared_race");
  EXPECT_EQ(results[0]["level"], "error");
  EXPECT_EQ(results[0]["message"]["text"], "shared_race in sum(float*): two threads write s[0]");
  const auto place = [&](size_t i) { return results[i]["locations"][0]["physicalLocation"]; };
  EXPECT_EQ(place(0)["artifactLocation"]["uri"], "a.cu");
  EXPECT_EQ(place(0)["region"]["startLine"], 12);
  EXPECT_EQ(place(1)["artifactLocation"]["uri"], "file:///b.cu");
  EXPECT_EQ(place(1)["region"]["startLine"], 1);
  EXPECT_FALSE(results[2].contains("locations"));
  EXPECT_EQ(text_of(nlohmann::json{{"a", "\xff"}}), "{\"a\":\"\xef\xbf\xbd\"}\n");
}

}  // namespace
}  // namespace mc::cli
