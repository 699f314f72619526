// SPDX-License-Identifier: Apache-2.0
#include "execute/sanitizer_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file.h"

namespace mc::execute {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// The parsed report from src/execute/sanitizer_reports/.
SanitizerReport report_in(const std::string& name) {
  const auto text =
      read_file(std::string(MC_SOURCE_DIR) + "/src/execute/sanitizer_reports/" + name, 1 << 20);
  EXPECT_TRUE(text) << name;
  return parse_sanitizer_report(text ? *text : "");
}

struct Expected {
  const char* file;
  size_t num_findings;
  const char* kind;  // The kind of the first finding.
  const char* kernel;
  std::array<int64_t, 3> block;
  std::array<int64_t, 3> thread;
  const char* detail;  // A part of it.
};

class SavedReport : public testing::TestWithParam<Expected> {};

TEST_P(SavedReport, BecomesFindings) {
  const Expected& expected = GetParam();
  const SanitizerReport report = report_in(expected.file);
  EXPECT_TRUE(report.has_banner);
  EXPECT_TRUE(report.has_summary);
  ASSERT_THAT(report.findings, SizeIs(expected.num_findings));
  const task::KernelFinding& first = report.findings[0];
  EXPECT_EQ(first.kind, expected.kind);
  EXPECT_EQ(first.kernel, expected.kernel);
  EXPECT_EQ(first.block, expected.block);
  EXPECT_EQ(first.thread, expected.thread);
  EXPECT_THAT(first.detail, HasSubstr(expected.detail));
  EXPECT_THAT(first.detail, Not(HasSubstr("Host Frame")));
}

using Triple = std::array<int64_t, 3>;
INSTANTIATE_TEST_SUITE_P(
    Tools, SavedReport,
    testing::Values(Expected{"memcheck_read.txt", 1, "out_of_bounds_read", "scale_kernel",
                             Triple{4, 0, 0}, Triple{255, 0, 0},
                             "Access at 0x7f2a1a000200 is out of bounds; and is 1 bytes"},
                    Expected{"memcheck_write.txt", 2, "out_of_bounds_write", "ns::fill<float, 256>",
                             Triple{0, 1, 2}, Triple{31, 0, 0},
                             "Invalid __shared__ write of size 4 bytes"},
                    Expected{"memcheck_misaligned.txt", 1, "misaligned", "copy4", Triple{0, 0, 0},
                             Triple{0, 0, 0}, "is misaligned"},
                    Expected{"memcheck_old.txt", 1, "out_of_bounds_read", "vector_add",
                             Triple{1, 0, 0}, Triple{2, 0, 0}, "Address 0x"},
                    Expected{"memcheck_device_function.txt", 1, "out_of_bounds_write",
                             "outer_kernel", Triple{0, 0, 0}, Triple{7, 0, 0}, "out of bounds"},
                    Expected{"racecheck.txt", 1, "shared_race", "row_sum_kernel", Triple{0, 0, 0},
                             Triple{0, 0, 0}, "and Read access at"},
                    Expected{"racecheck_hazard.txt", 1, "shared_race", "sum_kernel",
                             Triple{3, 0, 0}, Triple{33, 0, 0}, "Potential RAW hazard"},
                    Expected{"synccheck.txt", 1, "divergent_barrier", "reduce_kernel",
                             Triple{0, 0, 0}, Triple{63, 0, 0}, "Divergent thread(s) in block"}),
    [](const auto& test) {
      const std::string file = test.param.file;
      return file.substr(0, file.find('.'));
    });

TEST(SanitizerReport, OfACleanRunHasNoFindings) {
  for (const char* file : {"clean.txt", "racecheck_clean.txt"}) {
    const SanitizerReport report = report_in(file);
    EXPECT_TRUE(report.has_banner && report.has_summary) << file;
    EXPECT_THAT(report.findings, IsEmpty()) << file;
    EXPECT_EQ(report.complaint, "") << file;
  }
}

TEST(SanitizerReport, IgnoresFailedDriverCallsAndWarnings) {
  EXPECT_THAT(report_in("api_errors.txt").findings, IsEmpty());
  EXPECT_THAT(parse_sanitizer_report("========= Warning: Race reported between Write access at k "
                                     "and Read access at k\n")
                  .findings,
              IsEmpty());
}

TEST(SanitizerReport, IgnoresAReadThatTheCompilerWidened) {
  const std::string head =
      "========= COMPUTE-SANITIZER\n========= Invalid __shared__ read of size ";
  const SanitizerReport wide = parse_sanitizer_report(head + "12 bytes\n");
  EXPECT_THAT(wide.findings, IsEmpty());
  EXPECT_THAT(wide.complaint, HasSubstr("compiler"));
  EXPECT_THAT(parse_sanitizer_report(head + "4 bytes\n").findings, SizeIs(1));
}

TEST(SanitizerReport, ReportsWhyTheSanitizerCouldNotAttach) {
  const SanitizerReport report = report_in("not_attached.txt");
  EXPECT_THAT(report.complaint, HasSubstr("No attachable process"));
  EXPECT_FALSE(report.has_summary);
  EXPECT_THAT(report.findings, IsEmpty());
}

TEST(SanitizerReport, IsBounded) {
  std::string text = "========= COMPUTE-SANITIZER\n";
  for (int i = 0; i < 1000; ++i) {
    text += "========= Invalid __global__ read of size 4 bytes\n=========     at kernel" +
            std::to_string(i) + "()+0x70\n=========     " + std::string(5000, 'x') + "\n";
  }
  const SanitizerReport report = parse_sanitizer_report(text);
  EXPECT_THAT(report.findings, SizeIs(kSanitizerFindingsMax));
  EXPECT_LE(report.findings[0].detail.size(), 300U);
}

TEST(SanitizerReport, AcceptsAnyText) {
  for (const char* text :
       {"", "=========", "========= \n=========     at\n", "==========\n", "=========     at 0x\n",
        "========= Invalid \n=========     by thread (\n=========     by thread (1,2) in block\n",
        "========= Invalid __\n=========     at +0x\n=========     by thread "
        "(99999999999999999999,0,0)\n",
        "========= Error: Race reported between Write access at "}) {
    parse_sanitizer_report(text);
  }
}

}  // namespace
}  // namespace mc::execute
