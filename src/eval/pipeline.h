// SPDX-License-Identifier: Apache-2.0
//
// Pipeline: the evaluation MooreEval on this machine.
//
// Preparing needs CPUs only (preparer.h): its result is a legal, compiled candidate or an outcome.
// Measuring needs a device; the CPU backend has one in software.  It has the stages correctness on
// secret inputs → runtime legality → performance.  Each stage runs only when the one before it
// passed.
//
//   MC_TRY(auto pipeline, eval::Pipeline::create({}, progress), "set up");
//   task::Verdict verdict = pipeline->evaluate(task, candidate);  // Prepares, then measures.
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
  double forward_s = 30;  // The limit of one trial.
  // The candidate's total wall-clock time for one verdict; waiting for others does not count.
  double candidate_s = 120;
  double judge_s = 300;  // One request to the judge: the reference may be slow on a CPU.
  int64_t memory_bytes = int64_t{4} << 30;
  int64_t tmp_bytes = int64_t{256} << 20;
  int threads_max = 64;
};

// The baselines that a correct candidate is timed against on a device.
struct Timing {
  bool enabled = true;
  // "eager", or "candidate": the candidate itself, to test the timing.
  std::string baseline = "eager";
  std::string compile_mode;  // The mode of torch.compile, the other baseline; "" for none.
  bool is_quick = false;     // True: fewer batches, with the precision of a reward.
  bool tf32 = false;         // True if candidates and baselines may use it.
  double budget_s = 6;
};

inline constexpr const char* kAllDevices = "all";

// With eight jobs a device gives 95 % of the verdicts that it gives with any number of jobs.  A
// small task then waits for at most about twice the time that it takes alone, and with 16 jobs for
// four times (schedule_load_test.cc).
inline constexpr int kJobsADevice = 8;

// The mode of the race check, in which a second candidate process on a device in software looks for
// the races that a GPU hides (race_check.h).  kAuto: where the machine has cores to spare.
enum class RaceCheckMode { kAuto, kOn, kOff };

struct Options {
  task::Backend backend = task::Backend::kCpu;
  // The key that all seeds of the run follow from, to repeat it; absent: one from the operating
  // system's entropy.  No verdict contains it: each has the seed of its own evaluation.
  std::optional<uint64_t> seed;
  Limits limits;
  task::Correctness correctness;
  Timing timing;
  // The rules for candidates, "musacoder" or "kernelbench" (data/policy).
  std::string policy = "musacoder";
  task::Dialect dialect = task::Dialect::kCuda;  // The dialect of the candidates (docs/musa.md).
  std::string musa_architecture{musify::kArchitectureDefault};
  std::filesystem::path python;  // Empty: compile::default_python().
  bool allow_weak_sandbox = false;
  std::string language = task::kAnyLanguage;  // The language that kernels must be written in.
  bool static_rules = true;                   // False: only the run decides.
  // True: all sources are compiled with PyTorch's own headers (docs/ptx.md).
  bool full_headers = false;
  bool profile = false;  // Trials have the sectors that kernels moved (the backend cpu).
  bool strict = false;   // True: also other seeds and compute-sanitizer (docs/timing.md).
  // A device architecture, "90" or "mp_31".  Where it is set, candidates are prepared for such a
  // device, which need not be here, and not measured.
  std::string architecture;
  RaceCheckMode race_check = RaceCheckMode::kAuto;
  int jobs = 0;    // Candidates that are judged at once; 0: Pipeline::jobs_wanted().
  int spares = 2;  // Judges kept ready on each device (worker/spares.h).
  // The devices that measure: "all" that are visible to this process and like the first one, or a
  // list of numbers and ids, "0,GPU-8c7a".
  std::string devices{kAllDevices};
  // True if candidates are judged in such a way that the commands that they send to their device
  // can be replayed on any other device: operators are commands, kernels have PTX, and tasks are
  // judged at small sizes, as on the CPU backend (docs/replay.md).
  bool is_portable = false;
  // Called with the recording of each measured candidate, or with the reason why it cannot be
  // replayed; null: nothing is recorded.  REQUIRES: is_portable, where it is not null.
  std::function<void(Result<Recording>)> on_recorded{};
};

// The result of a replay of a recording.
struct Replayed {
  std::string device;
  int64_t commands = 0;
  int64_t calls = 0;
  int64_t outputs = 0;                     // Compared outputs, including buffers.
  int64_t equal = 0;                       // Outputs that are equal bit by bit.
  std::vector<std::string> differences{};  // Outputs beyond the tolerance.
  std::vector<std::string> errors{};       // Commands with a different result.
  std::string unsupported;                 // The first feature that this device lacks; "" for none.
  std::vector<task::KernelFinding> findings{};  // Findings of a device in software.

  bool agrees() const { return differences.empty() && errors.empty(); }
};

using Progress = std::function<void(std::string_view step)>;

class Pipeline final : public task::Evaluator {
 public:
  // Finds PyTorch, builds the missing parts in the cache, and starts the zygotes.
  static Result<std::unique_ptr<Pipeline>> create(const Options& options, const Progress& progress);
  ~Pipeline() override;

  // The kind of this machine, as text and to compare two machines: backend, architecture, versions
  // of PyTorch and policy.  A candidate that was prepared under one description can be measured
  // under an equal one.
  std::string description() const;

  // The number of devices on which candidates are timed at the same time; 1 on the CPU backend.
  size_t num_devices() const;

  // The number of candidates that should be judged at once: kJobsADevice for each device, but no
  // more than the cores suffice for; 1 on the CPU backend.
  int jobs_wanted() const;

  // True if verdicts of measured candidates include a race check.
  bool checks_races() const;

  // True if the pipeline prepares for a device that is not here (Options::architecture).
  bool only_prepares() const;

  // Ok, or the reason why this machine cannot judge: each zygote starts a child in its sandbox.
  Status check_machine();

  // Ok, or the fault of `task`: it does not parse, or lacks Model, get_inputs or get_init_inputs.
  Status check_task(const task::Task& task);

  // How well the task's comparison detects wrong candidates, and which wrong candidates pass with
  // weights as the task initialises them, without the disturbance of docs/correctness.md; or why
  // the task cannot be judged.
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
  // kInvalidInput for a candidate's dialect that the backend or the width of its warps excludes.
  Status can_judge(task::Dialect dialect) const;
  // Prepares a candidate of the caller's own, without inspection.  `recorded` is the recorder's
  // response for `module`, and the artifacts were compiled by this pipeline's toolchain.
  PreparedCandidate trusted(const task::Task& task, const task::Candidate& candidate,
                            std::string module, std::string recorded,
                            std::vector<compile::Artifact> artifacts) const;
  // kInvalidInput where the candidate was prepared for another kind of machine or under another
  // policy.
  Status can_measure(const PreparedCandidate& prepared) const;
  // REQUIRES: can_measure(prepared).
  task::Verdict measure(const PreparedCandidate& prepared);
  task::Verdict measure(const PreparedCandidate& prepared, const task::Correctness& correctness);
  // kInvalidInput where the recording's data is malformed, kUnsupported where this device cannot
  // run it.  REQUIRES: Options::is_portable.
  Result<Replayed> replay(const Recording& recording);
  task::Verdict evaluate(const task::Task& task, const task::Candidate& candidate) override;
  // The same with other settings of the comparison and another dialect than the pipeline's, like
  // the overloads of prepare() and measure().  REQUIRES: check(correctness) is ok, and
  // can_judge(dialect) if there is one.
  task::Verdict evaluate(const task::Task& task, const task::Candidate& candidate,
                         const task::Correctness& correctness,
                         std::optional<task::Dialect> dialect);

 private:
  struct State;
  explicit Pipeline(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Builds the missing parts that `create` would build, and nothing else.
Status set_up_machine(const Options& options, const Progress& progress);

// The best backend for this machine: CUDA where there are nvcc, a GPU and a PyTorch with CUDA, else
// the CPU.
task::Backend best_backend(const std::filesystem::path& python);
// The backend with a name, "cuda", or for a device architecture, "90"; nothing if no backend that
// is built in has it.
std::optional<task::Backend> backend_named(std::string_view name);
std::string backend_names();  // "auto, cuda, musa, cpu"

}  // namespace mc::eval

#endif  // MC_EVAL_PIPELINE_H_
