// SPDX-License-Identifier: Apache-2.0
//
// Parses the output of compute-sanitizer into findings.
//
// Its lines begin with "=========".  An entry has a head ("Invalid __global__ read of size 4
// bytes") and indented lines of details; a summary ends the report.  The output of the program
// itself is between these lines and may imitate them, so a report is trusted only where it counts
// against the candidate.  A pure function.  Example:
//   const SanitizerReport report = parse_sanitizer_report(printed);
//   if (!report.findings.empty()) convict(report.findings);
#ifndef MC_EXECUTE_SANITIZER_REPORT_H_
#define MC_EXECUTE_SANITIZER_REPORT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "task/evidence.h"

namespace mc::execute {

inline constexpr size_t kSanitizerFindingsMax = 16;

struct SanitizerReport {
  bool has_banner = false;   // True if the sanitizer started.
  bool has_summary = false;  // True if the report is complete.
  // Findings of the kinds in device/ptx_driver/report.cc, one for each kind and location.  An error
  // of an unknown kind becomes "sanitizer".  Warnings and failed driver calls are not findings.
  std::vector<task::KernelFinding> findings;
  std::string complaint;  // The first message about the sanitizer itself: it could not attach, ...
};

SanitizerReport parse_sanitizer_report(std::string_view printed);

}  // namespace mc::execute

#endif  // MC_EXECUTE_SANITIZER_REPORT_H_
