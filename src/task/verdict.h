// SPDX-License-Identifier: Apache-2.0
//
// Verdict: MooreEval's result for one candidate.
//
// A variant with one alternative for each outcome; each alternative has only its own evidence.  A
// fault of the candidate is data here.  A failure of the environment is a Result elsewhere and
// reaches a verdict only as `Infra`, which is never scored.  The JSON form has a version and a
// schema (docs/verdict.schema.json); verdict_json.h converts both ways.
//
//   Verdict verdict = ...;
//   const char* name = outcome_name(verdict.outcome);        // "wrong"
//   if (auto* wrong = std::get_if<Wrong>(&verdict.outcome)) use(wrong->q);
#ifndef MC_TASK_VERDICT_H_
#define MC_TASK_VERDICT_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "task/correctness.h"
#include "task/task.h"

namespace mc::task {

// ---- Evidence -----------------------------------------------------------------------------------

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

// ---- Performance --------------------------------------------------------------------------------

// A median with its 95 % confidence interval.
struct Estimate {
  double median = 0;
  double low = 0;
  double high = 0;
  bool operator==(const Estimate&) const = default;
};

// All launches of one kernel in the traced calls.
struct KernelTime {
  std::string name;  // Mangled, as the device knows it.
  std::string
      // The owner: "candidate", or the library with the kernel: "libtorch_cuda.so", "driver", ...
      owner;
  double launches = 0;  // The number in each call.
  double time_us = 0;   // Time in each call, by events around each launch.
  double share = 0;     // The share of a call's device time.
  std::array<int64_t, 3> grid{};
  std::array<int64_t, 3> block{};
  int64_t registers = 0;     // The number for each thread.
  int64_t spill_bytes = 0;   // Stores and loads, from ptxas.
  int64_t shared_bytes = 0;  // Static and dynamic, of each block.
  double occupancy = 0;      // Resident warps as a share of a multiprocessor's maximum.
  bool operator==(const KernelTime&) const = default;
};

// The roofline of the candidate: the least time that the device needs for the bytes and operations.
struct Floor {
  double time_us = 0;        // max(bytes / bandwidth, operations / peak)
  std::string bound;         // "memory" or "compute": which of the two.
  int64_t bytes = 0;         // The bytes of inputs and outputs.
  double operations = 0;     // The operations of the reference.
  double bandwidth_gbs = 0;  // Measured on this device, 1e9 bytes a second.
  double peak_tflops = 0;    // Measured on this device for the task's dtype.
  bool operator==(const Floor&) const = default;
};

// The state of the device during timing, by NVML.
struct Clocks {
  int64_t sm_mhz_min = 0;
  int64_t sm_mhz_max = 0;
  int64_t memory_mhz = 0;
  std::vector<std::string> throttling;  // "power_cap", "thermal", ...
  bool operator==(const Clocks&) const = default;
};

// The method of timing (docs/timing.md).
struct Timing {
  // "enqueued": queued, then released at once; "host_synchronous": forward waits for the device.
  std::string mode;
  std::string cache;           // "inputs_cold": flushed before each batch, each input used once.
  int64_t batches = 0;         // The candidate's; the baseline has as many, alternately.
  int64_t calls = 0;           // The number in each batch.
  int64_t calls_verified = 0;  // Outputs of timed calls that the judge compared.
  bool tf32 = false;           // True if the baselines may use it.
  std::vector<std::string> notes;
  Clocks clocks;
  bool operator==(const Timing&) const = default;
};

// Measurements on the device; absent on the CPU backend, whose times are no evidence about a GPU.
struct Performance {
  Estimate speedup_eager;                   // The time of eager PyTorch over the candidate's.
  std::optional<Estimate> speedup_compile;  // The time of torch.compile over the candidate's.
  Estimate time_us;                         // The time of a call.
  Estimate time_eager_us;
  std::optional<Estimate> time_compile_us;
  Timing timing;
  double own_share = 0;  // The candidate's own kernels' share of the kernels' time.
  // The peak device memory of a call: parameters, results and temporaries, without its inputs, in
  // the blocks of 2 MiB that PyTorch's allocator requests.
  int64_t memory_bytes = 0;
  int64_t memory_eager_bytes = 0;
  std::vector<KernelTime> kernels;  // Longest first.
  Floor floor;
  bool operator==(const Performance&) const = default;
};

// ---- Outcomes -----------------------------------------------------------------------------------

struct Unextractable {  // No module, no ModelNew, or invalid Python.
  std::string reason;   // Stable id: "no_code", "no_model_new", "syntax_error", "too_large", ...
  std::string detail;
  SourceLocation location;
  bool operator==(const Unextractable&) const = default;
};
struct Illegal {
  std::string when;  // "static" | "link" | "run" | "timing"
  std::vector<RuleFinding> findings;
  bool operator==(const Illegal&) const = default;
};
struct CompileFailed {
  std::vector<Diagnostic> diagnostics;
  bool operator==(const CompileFailed&) const = default;
};
struct Crashed {      // An exception, a fatal signal, an exit, a fatal kernel finding.
  std::string stage;  // "record" | "load" | "init" | "forward"
  std::optional<Exception> exception;
  int signal = 0;     // 0 = none.
  int exit_code = 0;  // The code of a process that exited without a response.
  std::vector<KernelFinding> findings;
  std::vector<Trial> trials;  // The trials before the crash.
  bool operator==(const Crashed&) const = default;
};
struct TimedOut {
  std::string stage;
  double limit_s = 0;
  std::vector<KernelFinding> findings;
  bool operator==(const TimedOut&) const = default;
};
struct OutOfMemory {
  std::string stage;
  int64_t limit_bytes = 0;
  bool operator==(const OutOfMemory&) const = default;
};
struct Wrong {
  double q = 0;  // Share of the trials that count which passed, < 1.
  // True if it is right at the main shape and wrong only at other shapes, which count.
  bool specialised = false;
  std::vector<Trial> trials;
  bool operator==(const Wrong&) const = default;
};
struct Passed {
  std::vector<Trial> trials;
  std::optional<Performance> performance;
  // The share of trials at other sizes that passed; 1 where all trials count.
  double generality = 1;
  bool operator==(const Passed&) const = default;
};
struct Unsupported {  // The backend lacks a feature; no evidence about the candidate.
  std::vector<RuleFinding> constructs;
  bool operator==(const Unsupported&) const = default;
};
struct Infra {  // The environment failed; the evaluation should be repeated.
  std::string message;
  bool operator==(const Infra&) const = default;
};

using Outcome = std::variant<Unextractable, Illegal, CompileFailed, Crashed, TimedOut, OutOfMemory,
                             Wrong, Passed, Unsupported, Infra>;

// "extraction", "illegal", "compile", "runtime", "timeout", "oom", "wrong", "pass", "unsupported",
// "infra": the names of the JSON form and of the corpus.
const char* outcome_name(const Outcome& outcome);
const std::vector<std::string>& outcome_names();

// ---- Telemetry ----------------------------------------------------------------------------------

// A stage, or a part of one ("time.alone"), which comes before the whole ("time").
struct StageTime {
  std::string stage;
  double ms = 0;
  bool operator==(const StageTime&) const = default;
};

// The sizes to which the task was reduced to fit the backend.
struct Reduction {
  std::map<std::string, int64_t> native;  // Module constants in the task's source.
  std::map<std::string, int64_t> used;
  std::string reason;  // "" when the native shapes were used.
  bool operator==(const Reduction&) const = default;
};

// One check of the strict tier (docs/timing.md).  A check that did not run is no evidence about the
// candidate.
struct Audit {
  std::string check;   // "other_seeds", "memcheck", "racecheck", "synccheck"
  std::string result;  // "clean" | "findings" | "not_run"
  std::string detail;  // The reason why it did not run; else "".
  bool operator==(const Audit&) const = default;
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

// The match between the parameters and buffers of ModelNew and those of the reference, as the
// candidate process reports it.  Each entry is like "gemm.weight: float32 [4, 3]".
struct StateMatch {
  std::vector<std::string> missing;    // Names of the reference that ModelNew lacks.
  std::vector<std::string> unmatched;  // The names with another shape or dtype in ModelNew.
  std::vector<std::string> own;        // Parameters of ModelNew that received no value.
  bool operator==(const StateMatch&) const = default;
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

// The quality of the task's comparison (python/harness/judge/hygiene.py).
struct TaskGrade {
  std::string grade;  // "good" | "weak" | "trivial"; "" where no judge opened the task.
  std::vector<std::string> reasons;
  // True if a candidate that computes nothing passes: passing earns no reward.
  bool is_trivial() const { return grade == "trivial"; }
  bool operator==(const TaskGrade&) const = default;
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

// The rule of a finding about a candidate whose kernels read none of their inputs, so that the
// output is constant.  The task is a trivial one: for another task such a candidate is wrong.
inline constexpr const char* kConstantAnswer = "run.constant_answer";
// The rule of a finding about right outputs that no kernel of the candidate computed.
inline constexpr const char* kHostOutput = "run.host_output";

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
