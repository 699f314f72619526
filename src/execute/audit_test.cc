// SPDX-License-Identifier: Apache-2.0
#include "execute/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/file.h"

namespace mc::execute {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr const char* kClean =
    "========= COMPUTE-SANITIZER\naudit: native {}\naudit: done, 1 of 1\n"
    "========= ERROR SUMMARY: 0 errors\n";
constexpr const char* kFound =
    "========= COMPUTE-SANITIZER\n========= Invalid __global__ read of size 4 bytes\n"
    "=========     at _Z1kPf+0x70\n========= \naudit: done, 0 of 1\n"
    "========= ERROR SUMMARY: 1 error\n";

struct Case {
  const char* name;
  std::string printed;
  int exit_code;
  const char* result;
  const char* detail;  // A part of it.
  bool is_truncated = false;
};

class Conclusion : public testing::TestWithParam<Case> {};

TEST_P(Conclusion, FollowsFromTheRun) {
  const Case& given = GetParam();
  const AuditEnd end = conclude_audit(
      SanitizerTool::kMemcheck,
      {given.printed, given.is_truncated, given.exit_code,
       given.exit_code < 0 ? "time limit" : "exit code " + std::to_string(given.exit_code)});
  EXPECT_EQ(end.audit.check, "memcheck");
  EXPECT_EQ(end.audit.result, given.result);
  EXPECT_THAT(end.audit.detail, HasSubstr(given.detail));
  EXPECT_EQ(end.findings.empty(), end.audit.result != "findings");
}

INSTANTIATE_TEST_SUITE_P(
    Runs, Conclusion,
    testing::Values(
        Case{"clean", kClean, 0, "clean", ""}, Case{"found", kFound, kErrorsFound, "findings", ""},
        // The report is faked, and counts against the candidate nevertheless.
        Case{"found_by_an_exit_code_of_its_own", kFound, 0, "findings", ""},
        Case{"exit_code_without_report",
             "========= COMPUTE-SANITIZER\naudit: done, 1 of 1\n========= ERROR SUMMARY: 1 error\n",
             kErrorsFound, "findings", ""},
        Case{"report_flooded_away", "========= COMPUTE-SANITIZER\n========= Error: oops\n",
             kErrorsFound, "findings", "", true},
        Case{"sanitizer_in_trouble",
             "========= COMPUTE-SANITIZER\n========= Internal Sanitizer Error: out of memory\n",
             kErrorsFound, "not_run", "Internal Sanitizer Error"},
        Case{"not_started", "sh: no such file", 127, "not_run", "does not start"},
        Case{"not_attached",
             "========= COMPUTE-SANITIZER\n========= Error: No attachable process found.\n", 1,
             "not_run", "No attachable"},
        Case{"task_does_not_run",
             "========= COMPUTE-SANITIZER\naudit: cannot: too large\n"
             "========= Target application returned an error\n========= ERROR SUMMARY: 0 errors\n",
             3, "not_run", "too large"},
        Case{"left_early", "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n", 0,
             "not_run", "before its end"},
        Case{"sanitizer_killed", "========= COMPUTE-SANITIZER\naudit: done, 1 of 1\n", 0, "not_run",
             "before its end"},
        Case{"too_slow", "========= COMPUTE-SANITIZER\naudit: native {}\n", -1, "not_run",
             "time limit"},
        Case{"refused_all_sizes",
             "========= COMPUTE-SANITIZER\naudit: done, 0 of 3\n"
             "========= ERROR SUMMARY: 0 errors\n",
             0, "not_run", "none of the audit's sizes"},
        Case{"not_loaded",
             "========= COMPUTE-SANITIZER\naudit: load: ImportError: undefined symbol: f\n"
             "audit: done, 0 of 3\n========= ERROR SUMMARY: 0 errors\n",
             0, "not_run", "undefined symbol: f"}),
    [](const auto& test) { return test.param.name; });

TEST(ConcludeAudit, NamesTheToolInEachFinding) {
  const AuditEnd end = conclude_audit(SanitizerTool::kMemcheck, {kFound, false, kErrorsFound, ""});
  ASSERT_THAT(end.findings, SizeIs(1));
  EXPECT_EQ(end.findings[0].kind, "out_of_bounds_read");
  EXPECT_THAT(end.findings[0].detail, HasSubstr("compute-sanitizer memcheck: Invalid __global__"));
}

// Replaces the sanitizer: reports success for a program that it does not run.
constexpr const char* kContent = R"sh(#!/bin/sh
echo "========= COMPUTE-SANITIZER"
for request; do :; done
[ "$MC_GIVEN" = 1 ] || exit 1
grep -q '"device":"cuda"' "$request" && echo "audit: done, 1 of 1"
case "$*" in *"--tool racecheck"*"--kernel-name kernel_name=_Z1kPf "*) ;; *) exit 1 ;; esac
echo "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"
)sh";

TEST(Audit, RunsTheSanitizerInTheSandbox) {
  const auto folder = TemporaryDirectory::create("audit_test");
  ASSERT_TRUE(folder);
  const std::filesystem::path sanitizer = folder->path() / "bin/compute-sanitizer";
  std::filesystem::create_directories(sanitizer.parent_path());
  ASSERT_TRUE(write_file_atomically(sanitizer, kContent));
  std::filesystem::permissions(sanitizer, std::filesystem::perms::owner_all);
  AuditOptions options{sanitizer, "/usr/bin/python3", "/", "cuda", "", {"MC_GIVEN=1"}, {}, 10};
  options.child.weak_sandbox = true;
  const Program program{"", {}, {}};
  const std::vector<std::string> kernels = {"_Z1kPf"};
  const auto end = audit(SanitizerTool::kRacecheck, options, {"", program, kernels, 1});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->audit, (task::Audit{"racecheck", "clean", ""}));
}

TEST(Audit, ReturnsAnErrorForAMissingProgram) {
  const Program program{"", {}, {}};
  const AuditOptions options{
      "/nowhere/bin/compute-sanitizer", "/usr/bin/python3", "/", "", "", {}, {}, 10};
  EXPECT_FALSE(audit(SanitizerTool::kMemcheck, options, {"", program, {}, 1}));
}

}  // namespace
}  // namespace mc::execute
