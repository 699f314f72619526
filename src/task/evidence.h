// SPDX-License-Identifier: Apache-2.0
//
// Evidence: the reports of compilers, devices, judges and checks about a candidate or its task.
#ifndef MC_TASK_EVIDENCE_H_
#define MC_TASK_EVIDENCE_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mc::task {

// A location in the candidate's text.  `source` is "candidate" for the Python module or
// "cuda_sources[0]" and the like for a native source; lines and columns count from 1, 0 = unknown.
struct SourceLocation {
  std::string source;
  int line = 0;
  int column = 0;
  std::string excerpt;  // The line of text, bounded.
  bool operator==(const SourceLocation&) const = default;
};

struct Diagnostic {
  std::string severity;  // "error" | "warning" | "note"
  std::string message;
  SourceLocation location;
  bool operator==(const Diagnostic&) const = default;
};

// One rule that the candidate broke, before it ran or while it ran.
struct RuleFinding {
  std::string rule;  // Id in the policy, for example "python.forbidden_import".
  std::string message;
  SourceLocation location;
  bool operator==(const RuleFinding&) const = default;
};

// A fault of a kernel that the device detected.
struct KernelFinding {
  std::string kind;  // "out_of_bounds_read", "shared_race", ... (device/ptx_driver/report.cc)
  std::string kernel;
  std::array<int64_t, 3> block{};
  std::array<int64_t, 3> thread{};
  std::string detail;
  SourceLocation location;
  SourceLocation other{};  // The other thread's access in a race, as far as it is known.
  bool operator==(const KernelFinding&) const = default;
};

// True if a finding of this kind ends its kernel on a device: later findings may follow from it.
bool ends_kernel(const KernelFinding& finding);

struct Mismatch {
  std::vector<int64_t> index;
  std::string expected;
  std::string got;
  bool operator==(const Mismatch&) const = default;
};

// The comparison of one output tensor with the reference.
struct OutputCheck {
  std::string path;     // "output", "output[1]", "output['loss']", "buffer bn.running_mean"
  std::string problem;  // "" when it agrees; "value", "shape", "dtype", "nonfinite", "missing", ...
  std::string detail;   // One line: "shape [4, 5], expected [4, 6]".
  int64_t num_elements = 0;
  int64_t num_wrong = 0;
  double error_max = 0;        // Largest |got - expected|.
  double error_tolerance = 0;  // The allowed error at the largest error.
  std::vector<Mismatch> first_mismatches;
  std::map<std::string, int64_t> histogram;  // Error over tolerance, by decade: "1-10", ...
  std::string diagnosis;                     // A sentence that explains the output, or "".
  bool operator==(const OutputCheck&) const = default;
};

struct Trial {
  int index = 0;
  std::string shape;                         // "native", "reduced", "ragged", "small"
  std::string distribution;                  // "native", "heavy_tail", ...
  std::map<std::string, int64_t> constants;  // Module constants bound for this shape.
  std::string inputs_digest;                 // The digest of the bytes of all inputs.
  bool passed = false;
  std::vector<OutputCheck> checks;  // The failed comparisons.
  // Contains fatal findings only where the trial does not count.
  std::vector<KernelFinding> findings;
  std::string inputs_mutated;  // Names of inputs that were overwritten, or "".
  // Sectors of 32 bytes that kernels moved in global memory; 0 where they were not counted.
  int64_t sectors = 0;
  bool operator==(const Trial&) const = default;
};

// An exception in the Python of the candidate process.
struct Exception {
  std::string type;
  std::string message;
  SourceLocation location;             // The innermost line of the candidate's own code.
  std::vector<SourceLocation> frames;  // The candidate's own frames, outermost first.
  bool operator==(const Exception&) const = default;
};

// The rule of a finding about a candidate whose kernels read none of their inputs, so that the
// output is constant.  The task is a trivial one: for another task such a candidate is wrong.
inline constexpr const char* kConstantAnswer = "run.constant_answer";
// The rule of a finding about right outputs that no kernel of the candidate computed.
inline constexpr const char* kHostOutput = "run.host_output";

// The sizes to which the task was reduced to fit the backend.
struct Reduction {
  std::map<std::string, int64_t> native;  // Module constants in the task's source.
  std::map<std::string, int64_t> used;
  std::string reason;  // "" when the native shapes were used.
  bool operator==(const Reduction&) const = default;
};

// The match between the parameters and buffers of ModelNew and those of the reference, as the
// candidate process reports it.  Each entry is like "gemm.weight: float32 [4, 3]".
struct StateMatch {
  std::vector<std::string> missing;    // Names of the reference that ModelNew lacks.
  std::vector<std::string> unmatched;  // The names with another shape or dtype in ModelNew.
  std::vector<std::string> own;        // Parameters of ModelNew that received no value.
  bool operator==(const StateMatch&) const = default;
};

// The quality of the task's comparison (python/harness/judge/hygiene.py).
struct TaskGrade {
  std::string grade;  // "good" | "weak" | "trivial"; "" where no judge opened the task.
  std::vector<std::string> reasons;
  // True if a candidate that computes nothing passes: passing earns no reward.
  bool is_trivial() const { return grade == "trivial"; }
  bool operator==(const TaskGrade&) const = default;
};

// One check of the strict tier (docs/timing.md).  A check that did not run is no evidence about the
// candidate.
struct Audit {
  std::string check;   // "other_seeds", "memcheck", "racecheck", "synccheck"
  std::string result;  // "clean" | "findings" | "not_run"
  std::string detail;  // The reason why it did not run; else "".
  bool operator==(const Audit&) const = default;
};

}  // namespace mc::task

#endif  // MC_TASK_EVIDENCE_H_
