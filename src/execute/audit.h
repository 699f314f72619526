// SPDX-License-Identifier: Apache-2.0
//
// Audit: runs a candidate's kernels under compute-sanitizer, at a task's small sizes.
//
// Each tool runs as one process tree in a sandbox of its own: the sanitizer's front end, and below
// it python/harness/judge/audit.py with the candidate.  The candidate can print anything there.
// Therefore printed findings count against it, the front end's exit code does so without them, and
// only a run that is complete in every respect is clean.  Any other result is "not_run": not the
// candidate's fault, and no proof that it is right (docs/timing.md).
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
#include "task/evidence.h"

namespace mc::execute {

// The tool initcheck is left out: it would report each byte of padding that PyTorch copies.
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
  std::vector<std::string> environment;  // Variables beside those that every audit has.
  // The limits of memory, threads and /tmp are raised to what a sanitizer needs.
  ChildLimits child;
  double wall_s = 300;
};

struct AuditSubject {
  const std::string& task_source;
  const Program& program;
  // The mangled names of the kernels to watch; all kernels where it is empty.
  const std::vector<std::string>& kernels;
  uint64_t seed = 0;
  std::string mode = "train";  // The mode and precision of task::Correctness.
  std::string precision = "task";
};

struct AuditEnd {
  task::Audit audit;
  std::vector<task::KernelFinding> findings;  // Not empty where the result is "findings".
};

// Runs one tool.  kUnavailable where the sandbox or the sanitizer cannot be started.  Thread-safe.
Result<AuditEnd> audit(SanitizerTool tool, const AuditOptions& options,
                       const AuditSubject& subject);

// ---- For audit() and its test -------------------------------------------------------------------

inline constexpr int kErrorsFound = 86;  // The front end's exit code.

struct AuditRun {
  std::string printed;
  bool is_truncated = false;  // The middle of the output is missing.
  int exit_code = -1;         // The front end's exit code; -1 where it was killed.
  std::string ending;         // "exit code 3", "time limit", ...
};

// The result of a run for the candidate.  A pure function.
AuditEnd conclude_audit(SanitizerTool tool, const AuditRun& run);

}  // namespace mc::execute

#endif  // MC_EXECUTE_AUDIT_H_
