// SPDX-License-Identifier: Apache-2.0
//
// Verdict: MooreEval's result for one candidate.
//
// A fault of the candidate is data here.  A failure of the environment is a Result elsewhere and
// reaches a verdict only as `Infra`, which is never scored.  The JSON form has a version and a
// schema (docs/verdict.schema.json); verdict_json.h converts both ways.
#ifndef MC_TASK_VERDICT_H_
#define MC_TASK_VERDICT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "task/correctness.h"
#include "task/outcome.h"
#include "task/task.h"

namespace mc::task {

// A stage, or a part of one ("time.alone"), which comes before the whole ("time").
struct StageTime {
  std::string stage;
  double ms = 0;
  bool operator==(const StageTime&) const = default;
};

// The check for races and accesses out of bounds on a device without a GPU, beside the evaluation
// on a device that hides them (docs/correctness.md).
struct RaceCheck {
  // "off" | "clean" | "found" | "not_run" | "not_needed": the candidate fails without it.
  std::string state = "off";
  std::string device;  // The device of the check, not the one of the verdict.
  std::string reason;  // The reason why it did not run; else "".
  double seconds = 0;  // Wall-clock time, while the other device works.
  bool operator==(const RaceCheck&) const = default;
};

struct Telemetry {
  std::vector<StageTime> stages;
  std::vector<std::string> protections_off;  // Sandbox protections that this machine lacks.
  std::map<std::string, int64_t> aten_ops;   // Dispatcher calls in forward.
  Reduction reduction;
  std::string pytorch;
  int64_t memory_peak_bytes = 0;  // The peak of the candidate process.
  bool compile_cached = false;
  double compile_cpu_s = 0;  // User and system time of the compilers.
  // The names that the facade lacks, for each extension that was compiled with PyTorch's full
  // headers instead (docs/ptx.md).
  std::vector<std::string> full_headers;
  std::string output_tail;    // The end of the candidate's output, bounded.
  std::vector<Audit> audits;  // The audits of the strict tier, as far as they ran.
  RaceCheck race_check;
  StateMatch state;
  std::vector<SourceLocation> fixed_sizes;  // Lines of a wrong candidate with a size of the task.
  bool operator==(const Telemetry&) const = default;
};

// The settings of the evaluation.  Two verdicts are comparable where these are equal.
struct Protocol {
  std::string policy;                   // The legality policy and its version: "musacoder/2".
  Dialect dialect = Dialect::kCuda;     // The dialect of the candidate (docs/musa.md).
  std::string musa_architecture;        // "mp_31"; "" for the dialect of CUDA.
  std::string language = kAnyLanguage;  // The language that kernels must be in.
  // The mode is the actual one: a model that is random in training is judged in eval mode.
  Correctness correctness;
  std::string timing = "none";  // "full" | "quick" | "none"
  std::string baseline;         // The baseline of the timing, "eager"; "" if not timed.
  std::string compile_mode;     // The mode of torch.compile, the other baseline; "" for none.
  bool tf32 = false;            // True if candidate and baselines may use it.
  bool strict = false;          // True with the strict tier (docs/timing.md).
  bool race_check = false;      // True if findings of a device without a GPU count, too.
  std::string device;           // "GPU-…"; "" on the CPU backend.
  bool operator==(const Protocol&) const = default;
};

struct Verdict {
  std::string task;
  std::string candidate;
  std::string candidate_hash;  // The hash of the extracted module.
  Backend backend = Backend::kCpu;
  uint64_t seed = 0;
  Protocol protocol;
  TaskGrade task_grade;
  Outcome outcome = Infra{"not judged"};
  // Conditions that the outcome does not cover: "its own sizes: dim 16384 (2048 was tried)".
  std::vector<std::string> not_tried;
  Telemetry telemetry;
  bool operator==(const Verdict&) const = default;
};

// True if a candidate that computes nothing would have earned the same: the candidate is right, at
// least in part, on a task that the judge found trivial.
bool is_earned_by_any_constant(const task::Verdict& verdict);

// A note for users about the dialect and the device that judged: "MUSA dialect (mp_31), judged as
// its port to CUDA on the CPU"; "" for CUDA.  No note claims that a result holds on MUSA hardware.
std::string dialect_note(const task::Verdict& verdict);

}  // namespace mc::task

#endif  // MC_TASK_VERDICT_H_
