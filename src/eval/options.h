// SPDX-License-Identifier: Apache-2.0
//
// Options: the settings of an evaluation on this machine, and the names of backends.
#ifndef MC_EVAL_OPTIONS_H_
#define MC_EVAL_OPTIONS_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "eval/recording.h"
#include "musify/port.h"
#include "task/correctness.h"
#include "task/task.h"

namespace mc::eval {

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
  int spares = 2;  // Judges kept ready on each device (worker/warm_pool.h).
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

// Called with a phrase before each long step.
using Progress = std::function<void(std::string_view step)>;

// The best backend for this machine: CUDA where there are nvcc, a GPU and a PyTorch with CUDA, else
// the CPU.
task::Backend best_backend(const std::filesystem::path& python);
// The backend with a name, "cuda", or for a device architecture, "90"; nothing if no backend that
// is built in has it.
std::optional<task::Backend> backend_named(std::string_view name);
std::string backend_names();  // "auto, cuda, musa, cpu"

}  // namespace mc::eval

#endif  // MC_EVAL_OPTIONS_H_
