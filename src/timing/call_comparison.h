// SPDX-License-Identifier: Apache-2.0
//
// CallComparison: times two contenders call by call (device/cuda/timed_batch.h).
//
// Other evaluations may use the device during the warm-up: a few calls of each side show whether
// they can be queued completely, and how long they take.  The rounds follow with exclusive use: a
// batch of calls of each side, in random order, on the same fresh inputs; and one more call of the
// candidate, measured launch by launch.  Other evaluations may use the device again while outputs
// are compared with the reference's.
//
// The time of a call is measured by the device's events, in a process that runs none of the
// candidate's host code.  The calls whose outputs are compared are selected at random after a
// batch; their outputs are copied then, and compared later with the reference's for the same
// inputs, which are generated once more.
#ifndef MC_TIMING_CALL_COMPARISON_H_
#define MC_TIMING_CALL_COMPARISON_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "execute/executor.h"
#include "task/outcome.h"
#include "timing/device_speed.h"
#include "timing/nvml.h"

namespace mc::timing {

struct CallOptions {
  int rounds = 13;
  double round_us = 20'000;  // The duration of the slower side's calls, with the time between them.
  int64_t batch_bytes_max = int64_t{4} << 30;  // The bound on a round's inputs and outputs.
  int verified = 2;                            // Checked calls of each round, selected after it.
  double budget_s = 6;
  // The time limit of a batch, in seconds, in addition to a multiple of its expected duration.
  double patience_s = 5;
  // Additional time for the first batch: Triton kernels are compiled in their first call, and an
  // autotuner times its configurations.
  double first_s = 0;
  uint64_t seed = 0;  // Determines the order and the inputs.
  bool tf32 = false;  // True if the judge's reference may use TF32.
  Clock clock{};

  // Selects the precision of a reward.
  void make_quick() {
    rounds = 5;
    round_us = 5'000;
  }
};

// A candidate's process and its device process; or a baseline, which is trusted: a process of its
// own, or the judge.
struct TimedProcess {
  execute::Session* session = nullptr;       // Null for the judge's own reference.
  execute::DeviceProcess* device = nullptr;  // Null for a baseline.
};

// The memory of a round's calls, with two copies of the inputs and one of the outputs: at most
// `bytes_max`, unless a single call needs more.
int64_t batch_bytes(int64_t inputs_bytes, int64_t outputs_bytes, int64_t bytes_max);

class CallComparison {
 public:
  struct Timed {
    task::Performance performance;        // Without roofline, kernels and compiled baseline.
    int64_t launches_own_least = 0;       // The least number in a call.
    int64_t calls = 0;                    // The candidate's calls.
    Work work;                            // The work of one call.
    std::vector<worker::Kernel> kernels;  // The kernels of one call.
  };

  // REQUIRES: the referenced arguments outlive it.
  CallComparison(execute::Judge& judge, TimedProcess candidate, TimedProcess baseline,
                 const execute::StageLimits& limits, const CallOptions& options, const Nvml* nvml);
  CallComparison(const CallComparison&) = delete;
  CallComparison& operator=(const CallComparison&) = delete;
  ~CallComparison();  // Releases the judge's memory for the comparison.

  // All three return `Wrong` where an output is wrong, and the other outcomes of a running
  // candidate.  Other evaluations may use the device during warm_up() and finish(), and not during
  // run().  `pause` is called between their steps; another evaluation may then get exclusive use.
  Result<std::optional<task::Outcome>> warm_up(const std::function<void()>& pause);
  // REQUIRES: warm_up() returned no outcome.
  Result<std::optional<task::Outcome>> run();
  // REQUIRES: run() returned no outcome.
  execute::Stage<Timed> finish(const std::function<void()>& pause);

 private:
  using EarlyOutcome = std::optional<task::Outcome>;
  struct Shared {
    worker::Tree inputs;
    int64_t stride = 0;
    int64_t nbytes = 0;
    Fd region;
    int64_t calls = 0;  // The number of calls that fit.
  };
  struct Side {
    explicit Side(TimedProcess who) : process(who) {}
    TimedProcess process;
    int64_t address = 0;  // The address of the inputs in the candidate's view.
    bool is_gated = true;
    bool is_long = false;         // True for more commands than fit behind a gate.
    std::vector<double> us;       // The time of each call that counts.
    std::vector<double> medians;  // The median of each round.
    // The least host-clock time of each round in which a call was checked by it.
    std::vector<double> host_us;
    int64_t memory_bytes = 0;                                  // The peak device memory of a call.
    double call_us = std::numeric_limits<double>::infinity();  // The least median of a batch.
  };
  // The outputs of a call, copied after its batch.
  struct Taken {
    int64_t number;  // The number of the batch.
    int64_t call;
    worker::Response<worker::DeviceTimeTakeRequest> outputs;
  };
  Status close();
  Status make_room(int64_t calls);
  int64_t calls_that_fit() const;
  int64_t calls_of_round() const;
  Status generate_inputs(int64_t calls);
  Result<EarlyOutcome> run(Side& side, int64_t calls, bool is_itemised = false);
  Result<EarlyOutcome> run_candidate(Side& side, int64_t calls, bool is_itemised);
  // Copies a call's outputs, and compares them now, or in finish() if `may_wait`.
  Result<EarlyOutcome> verify(const Side& side, int64_t call, const worker::Tree& outputs,
                              bool may_wait);
  Result<EarlyOutcome> check(const Taken& taken);
  Result<EarlyOutcome> check_kept(const std::function<void()>& pause);
  Status regenerate_inputs(int64_t number);
  void measure_memory();
  // Records freed memory: the driver clears it in the background, which slows down other work.
  void note_freed(int64_t bytes);
  void wait_until_cleared() const;
  bool is_far_slower() const;
  Status run_baseline(Side& side, int64_t calls);
  Result<EarlyOutcome> run_pieces();
  void take(Side& side, const std::vector<double>& us, int64_t queued_whole);
  Result<EarlyOutcome> failed(const char* what, const execute::CallResult& result,
                              double limit_s) const;
  EarlyOutcome wrong_in_a_batch(const std::string& problem) const;
  double bound_us() const;
  Timed summarize() const;

  // Constant after construction.
  execute::Judge& judge_;
  const execute::StageLimits& limits_;
  CallOptions options_;
  const Nvml* nvml_;

  bool is_open_ = false;  // True if the judge holds memory for the comparison.
  std::mt19937_64 random_;
  worker::JudgeTimePlanResponse plan_;
  Shared shared_;
  Clock::TimePoint cleared_at_{};  // The time when all freed memory has been cleared.
  Side own_;
  Side other_;  // The baseline's.
  std::vector<worker::Kernel> kernels_;
  std::vector<std::string> notes_;
  std::vector<Taken> kept_;  // Outputs that are compared by finish().
  int64_t calls_of_round_ = 0;
  bool counts_ = false;
  int64_t number_ = 0;  // The number of the last batch.
  int64_t calls_ = 0;
  int64_t verified_ = 0;
  int64_t launches_own_least_ = std::numeric_limits<int64_t>::max();
  task::Clocks clocks_;
};

}  // namespace mc::timing

#endif  // MC_TIMING_CALL_COMPARISON_H_
