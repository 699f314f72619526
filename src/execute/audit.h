// SPDX-License-Identifier: Apache-2.0
//
// Audit: a candidate's kernels under compute-sanitizer, at a task's small sizes.
//
// One tool is one process tree in a sandbox of its own: the sanitizer's front end, and below it
// python/harness/judge/audit.py with the candidate.  Whoever runs there can print what it likes; so
// what is printed can convict, the front end's exit code convicts without it, and only a run that
// came to its end in every respect is clean.  All else is "not_run": no fault of the candidate's,
// and no proof that it is right (docs/timing.md).
//
//   MC_TRY(AuditEnd end, audit(SanitizerTool::kMemcheck, options, subject), "strict");
//   if (end.audit.result == "findings") convict(end.findings);
#ifndef MC_EXECUTE_AUDIT_H_
#define MC_EXECUTE_AUDIT_H_

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/result.h"
#include "execute/children.h"
#include "execute/executor.h"
#include "task/verdict.h"

namespace mc::execute {

// Not initcheck: it would tell of each byte of padding that PyTorch copies.
enum class SanitizerTool { kMemcheck, kRacecheck, kSynccheck };
inline constexpr std::array kSanitizerTools = {SanitizerTool::kMemcheck, SanitizerTool::kRacecheck,
                                               SanitizerTool::kSynccheck};

const char* name_of(SanitizerTool tool);

struct AuditOptions {
  std::filesystem::path sanitizer;  // The program compute-sanitizer, without symbolic links.
  std::filesystem::path python;
  std::filesystem::path harness;
  std::string device;                    // The name in python/harness/worker/backends.py.
  std::filesystem::path aten;            // The library that candidates' extensions need; or "".
  std::vector<std::string> environment;  // Besides what every audit has.
  ChildLimits child;  // Memory, threads and /tmp are raised to what a sanitizer needs.
  double wall_s = 300;
};

struct AuditSubject {
  const std::string& task_source;
  const Program& program;
  const std::vector<std::string>& kernels;  // Those watched, mangled; where none are given, all.
  uint64_t seed = 0;
  std::string mode = "train";  // These two are as task::Correctness has them.
  std::string precision = "task";
};

struct AuditEnd {
  task::Audit audit;
  std::vector<task::KernelFinding> findings;  // Not empty where the result is "findings".
};

// kUnavailable where the sandbox or the sanitizer cannot be started.  Thread-safe.
Result<AuditEnd> audit(SanitizerTool tool, const AuditOptions& options,
                       const AuditSubject& subject);

// ---- For audit() and its test -------------------------------------------------------------------

inline constexpr int kErrorsFound = 86;  // The front end's exit code.

struct AuditRun {
  std::string printed;
  bool is_truncated = false;  // The middle of it is missing.
  int exit_code = -1;         // The front end's; -1 where it did not end by itself.
  std::string ending;         // "exit code 3", "time limit", ...
};

// The conclusions of a run on the candidate.  Pure.
AuditEnd conclude_audit(SanitizerTool tool, const AuditRun& run);

}  // namespace mc::execute

#endif  // MC_EXECUTE_AUDIT_H_
