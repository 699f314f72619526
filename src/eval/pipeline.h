// SPDX-License-Identifier: Apache-2.0
//
// Pipeline: MooreEval on this machine.
//
// Preparing (needs CPUs only; preparer.h): a candidate is found legal and compiled, or its outcome
// is known.  Measuring (needs a device; on the CPU backend one in software): correctness on
// secret inputs → runtime legality → performance.  Each stage runs only when the one before passed.
//
//   MC_TRY(auto pipeline, eval::Pipeline::create({}, progress), "set up");
//   task::Verdict verdict = pipeline->evaluate(task, candidate);  // The two in a row.
#ifndef MC_EVAL_PIPELINE_H_
#define MC_EVAL_PIPELINE_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/result.h"
#include "eval/prepared.h"
#include "eval/recording.h"
#include "musify/port.h"
#include "task/correctness.h"
#include "task/evaluator.h"

namespace mc::eval {

// A candidate that is legal and compiled, or its verdict.
using Preparation = std::variant<PreparedCandidate, task::Verdict>;

struct Limits {
  double compile_s = 120;
  double load_s = 60;     // Import of the candidate's module, and construction of ModelNew.
  double forward_s = 30;  // One trial.
  // All that the candidate does for one verdict, by the clock; waiting for others does not count.
  double candidate_s = 120;
  double judge_s = 300;  // One question to the judge: the reference may be slow on a CPU.
  int64_t memory_bytes = int64_t{4} << 30;
  int64_t tmp_bytes = int64_t{256} << 20;
  int threads_max = 64;
};

// The baselines that a correct candidate is timed against, on a device.
struct Timing {
  bool enabled = true;
  std::string baseline = "eager";  // "eager", or "candidate": against itself, to test the timing.
  std::string compile_mode;        // The mode of torch.compile, the other baseline; "" for none.
  bool is_quick = false;           // Fewer batches: a reward's precision, not a report's.
  bool tf32 = false;               // True if candidates and baselines may use it.
  double budget_s = 6;
};

inline constexpr const char* kAllDevices = "all";

// With eight jobs a device gives 95 % of the verdicts that it gives with any number, and a small
// task waits for at most some twice its own time; with 16 for four times (schedule_load_test.cc).
inline constexpr int kJobsADevice = 8;

// The look for the races that a GPU hides, by a second candidate process on a device without a GPU
// (race_check.h).  kAuto: where the machine has cores to spare.
enum class RaceCheckMode { kAuto, kOn, kOff };

struct Options {
  task::Backend backend = task::Backend::kCpu;
  // The key that all seeds of the run follow from, to repeat it.  One of the operating system's
  // entropy where absent.  No verdict tells it: each has the seed of its own evaluation.
  std::optional<uint64_t> seed;
  Limits limits;
  task::Correctness correctness;
  Timing timing;
  std::string policy = "musacoder";  // Or "kernelbench": what a candidate may do (data/policy).
  task::Dialect dialect = task::Dialect::kCuda;  // The candidates' (docs/musa.md).
  std::string musa_architecture{musify::kArchitectureDefault};
  std::filesystem::path python;  // Empty: compile::default_python().
  bool allow_weak_sandbox = false;
  std::string language = task::kAnyLanguage;  // The one that kernels are to be in.
  bool static_rules = true;                   // Off: only the run decides.
  bool full_headers = false;  // Compile all against PyTorch's own headers (docs/ptx.md).
  bool profile = false;       // Trials have the sectors that kernels moved (the backend cpu).
  bool strict = false;        // Other seeds and compute-sanitizer as well (docs/timing.md).
  // "90" or "mp_31": prepares for such a device, which need not be here, and does not measure.
  std::string architecture;
  RaceCheckMode race_check = RaceCheckMode::kAuto;
  int jobs = 0;    // Candidates that are judged at once; 0: Pipeline::jobs_wanted().
  int spares = 2;  // Judges kept ready, on each device (worker/spares.h).
  // Which devices measure: "all" that this process is shown and that are like the first one, or a
  // list of numbers and ids, "0,GPU-8c7a".
  std::string devices{kAllDevices};
  // True if candidates are judged so that what they send to their device can be replayed on any
  // other: their operators are commands, their kernels have PTX, and tasks are judged at small
  // sizes, as on the CPU backend (docs/replay.md).
  bool is_portable = false;
  // Gets what each measured candidate sent, or why that cannot be replayed; null: nothing is kept.
  // REQUIRES: is_portable, where it is not null.
  std::function<void(Result<Recording>)> on_recorded{};
};

// How a recording's replay ended.
struct Replayed {
  std::string device;
  int64_t commands = 0;
  int64_t calls = 0;
  int64_t outputs = 0;                     // Those that were compared, buffers among them.
  int64_t equal = 0;                       // Those that are equal bit by bit.
  std::vector<std::string> differences{};  // Outputs outside of the tolerance.
  std::vector<std::string> errors{};       // Commands that ended in another way.
  std::string unsupported;                 // The first thing that this device lacks; "" for none.
  std::vector<task::KernelFinding> findings{};  // Those of a device in software.

  bool agrees() const { return differences.empty() && errors.empty(); }
};

using Progress = std::function<void(std::string_view step)>;

class Pipeline final : public task::Evaluator {
 public:
  // Finds PyTorch, builds what is missing in the cache, starts the zygote.
  static Result<std::unique_ptr<Pipeline>> create(const Options& options, const Progress& progress);
  ~Pipeline() override;

  // The kind of machine that this is, for people and to compare two: backend, architecture,
  // versions of PyTorch and policy.  What was prepared under one can be measured under an equal
  // one.
  std::string description() const;

  // Candidates are timed on so many devices at once; 1 on the CPU backend.
  size_t num_devices() const;

  // The candidates that should be judged at once: kJobsADevice for each device, but no more than
  // there are cores for; 1 on the CPU backend.
  int jobs_wanted() const;

  // True if verdicts of measured candidates have a race check.
  bool checks_races() const;

  // True if it prepares for a device that is not here (Options::architecture).
  bool only_prepares() const;

  // The fault of this machine as a judge, or ok: a child of each zygote is made, in its sandbox.
  Status check_machine();

  // The fault of `task`, or ok: it does not parse, or lacks Model, get_inputs, get_init_inputs.
  Status check_task(const task::Task& task);

  // How good its comparison is, and what passes with weights as the task makes them, without the
  // disturbance of docs/correctness.md; or why it cannot be judged.
  struct Hygiene {
    task::TaskGrade grade;
    std::vector<std::string> as_initialised;
    double call_bytes = 0;
    std::string shape;  // "native", or "reduced" to fit the backend.
  };
  Result<std::variant<Hygiene, task::Unsupported>> grade_task(const task::Task& task);

  Preparation prepare(const task::Task& task, const task::Candidate& candidate);
  Preparation prepare(const task::Task& task, const task::Candidate& candidate,
                      const task::Correctness& correctness, std::optional<task::Dialect> dialect);
  // kInvalidInput for a candidate's dialect that the backend or the width of its warps rules out.
  Status can_judge(task::Dialect dialect) const;
  // A candidate of the caller's own, which nobody inspects: `recorded` is the recorder's answer for
  // `module`, and the artifacts are compiled by the toolchain that this pipeline has.
  PreparedCandidate trusted(const task::Task& task, const task::Candidate& candidate,
                            std::string module, std::string recorded,
                            std::vector<compile::Artifact> artifacts) const;
  // kInvalidInput where it was prepared for another kind of machine, or under another policy.
  Status can_measure(const PreparedCandidate& prepared) const;
  // REQUIRES: can_measure(prepared).
  task::Verdict measure(const PreparedCandidate& prepared);
  task::Verdict measure(const PreparedCandidate& prepared, const task::Correctness& correctness);
  // kInvalidInput where the recording's data is none, kUnsupported where this device cannot run
  // it.  REQUIRES: Options::is_portable.
  Result<Replayed> replay(const Recording& recording);
  task::Verdict evaluate(const task::Task& task, const task::Candidate& candidate) override;
  // The same, compared in another way than this pipeline's, like the overloads of the other two,
  // and in another dialect. REQUIRES: check(correctness) is ok, and can_judge(dialect) if there is
  // one.
  task::Verdict evaluate(const task::Task& task, const task::Candidate& candidate,
                         const task::Correctness& correctness,
                         std::optional<task::Dialect> dialect);

 private:
  struct State;
  explicit Pipeline(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Builds what `create` would build, and no more.
Status set_up_machine(const Options& options, const Progress& progress);

// The backend that this machine is best judged with: CUDA where nvcc, a GPU and a PyTorch that
// knows CUDA are, else the CPU.
task::Backend best_backend(const std::filesystem::path& python);
// The backend of a name, "cuda", or of its devices' architecture, "90"; none if none is built in.
std::optional<task::Backend> backend_named(std::string_view name);
std::string backend_names();  // "auto, cuda, musa, cpu"

}  // namespace mc::eval

#endif  // MC_EVAL_PIPELINE_H_
