// SPDX-License-Identifier: Apache-2.0
//
// The output of compute-sanitizer as findings.
//
// Its lines begin with "=========".  An entry has a head ("Invalid __global__ read of size 4
// bytes") and indented lines of detail; a summary ends the report.  What the program itself prints
// stands between, and may look like it: so a report can only be believed where it convicts.  Pure.
// Example:
//   const SanitizerReport report = parse_sanitizer_report(printed);
//   if (!report.findings.empty()) convict(report.findings);
#ifndef MC_EXECUTE_SANITIZER_REPORT_H_
#define MC_EXECUTE_SANITIZER_REPORT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "task/verdict.h"

namespace mc::execute {

inline constexpr size_t kSanitizerFindingsMax = 16;

struct SanitizerReport {
  bool has_banner = false;   // It started.
  bool has_summary = false;  // It came to its end.
  // With the kinds of device/ptx_driver/report.cc; those of one kind at one place once.  An error
  // of a kind that is not known is "sanitizer".  Warnings, and calls of the driver that fail, are
  // none.
  std::vector<task::KernelFinding> findings;
  std::string complaint;  // The first thing that it says of itself: it could not attach, ...
};

SanitizerReport parse_sanitizer_report(std::string_view printed);

}  // namespace mc::execute

#endif  // MC_EXECUTE_SANITIZER_REPORT_H_
