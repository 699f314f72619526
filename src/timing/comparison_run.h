// SPDX-License-Identifier: Apache-2.0
//
// ComparisonRun: a candidate timed against a baseline, by turns, on a device that nobody else uses
// meanwhile.
//
//   warm-up, beside others    a few small batches: what a call costs, whether it can be enqueued
//   measuring out, alone      how many calls a batch has, once
//   pairs, alone              one batch of each, in random order; a sample each
//   among them                batches whose time does not count: traced (who owns the kernels that
//                             run, and how long each takes), and with late inputs
//
// Every batch of the candidate's is followed by a copy of outputs that are chosen then, and their
// comparison with the reference.  What counts of a batch's time: accounting.h; docs/timing.md.
#ifndef MC_TIMING_COMPARISON_RUN_H_
#define MC_TIMING_COMPARISON_RUN_H_

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "task/verdict.h"
#include "timing/accounting.h"
#include "timing/batch_size.h"
#include "timing/device_speed.h"
#include "timing/nvml.h"
#include "timing/timed_process.h"

namespace mc::timing {

struct RunOptions {
  BatchLimits batch;
  // So many pairs, and more until the candidate ran for so long; fewer where the budget is over.
  int pairs = 13;
  double timed_us = 50'000;
  int pairs_max = 40;
  int pairs_min = 3;
  double budget_s = 6;      // For the pairs.
  int batches_traced = 3;   // Of the candidate's, among the pairs,
  int batches_late = 3;     // and with late inputs.
  int snapshots = 4;        // Of outputs of each batch of the candidate's.
  bool is_trusted = false;  // Both are baselines: nothing is verified.
  uint64_t seed = 0;        // Of the order, and of the inputs.
  Clock clock{};

  // A reward's precision: batches as long, but few of them.
  void make_quick() {
    pairs = pairs_max = 5;
    batches_traced = batches_late = 2;
  }
};

struct Timed {
  task::Performance performance;    // Without floor, kernels and own_share.
  std::vector<TracedBatch> traced;  // Some of the candidate's.
  double claimed_us = 0;            // What its other batches say of a call (accounting.h).
  bool is_idle = false;  // Some batch launched less than it had calls, unlike the baseline's.
  Work work;             // Of one call.
};

class ComparisonRun {
 public:
  // REQUIRES: what it refers to outlives it, and so do the sessions that it warms up.
  ComparisonRun(Judge& judge, const StageLimits& limits, const RunOptions& options,
                const Nvml* nvml);
  ComparisonRun(const ComparisonRun&) = delete;
  ComparisonRun& operator=(const ComparisonRun&) = delete;
  ~ComparisonRun();  // Gives back what memory the judge still has for it.

  // Both decide `Wrong` where an output is wrong, `Illegal` where calls were computed before their
  // turn, and what else may happen to a running candidate.
  // Others may use the device while the sessions warm up:
  Result<std::optional<task::Outcome>> warm_up(Session& candidate, Session& baseline);
  // but not from here on.  REQUIRES: warm_up decided nothing.
  Stage<Timed> run();

 private:
  using EarlyOutcome = std::optional<task::Outcome>;
  static constexpr int kNoLimit = std::numeric_limits<int>::max();
  enum class Extra { kTraced, kLate, kTracedBaseline };
  struct Process {
    TimedProcess timed;
    bool is_candidate;
    Samples samples{};  // Of the batches that count.
    CallCost cost{std::numeric_limits<double>::infinity(), 1};
    double enqueue_call_us = std::numeric_limits<double>::infinity();  // The least, of the host.
    int calls = 1;                                                     // In a batch.
    int calls_room = 0;        // What its memory has room for.
    int calls_max = kNoLimit;  // What was enqueued without blocking.
    bool is_early = false;     // Its work began before the gate was opened.
    bool is_idle = false;      // Whether a batch launched less than it had calls.
  };
  Status plan();
  Status close();
  Status find_room();
  Result<EarlyOutcome> open_processes(Session& candidate, Session& baseline);
  Result<EarlyOutcome> prepare(Process& process, int calls);
  Result<EarlyOutcome> warm_up_process(Process& process);
  Result<EarlyOutcome> measure_out();
  Result<EarlyOutcome> measure_out(Process& process);
  Result<EarlyOutcome> take_all();
  Result<EarlyOutcome> take_pair();
  Result<EarlyOutcome> take(Extra extra);
  Result<EarlyOutcome> sample(Process& process, TimedProcess::Wanted wanted, Batch& batch);
  Result<EarlyOutcome> verify(Process& process);
  EarlyOutcome wrong_in_a_batch(const std::string& problem) const;
  Result<EarlyOutcome> ended(const Process& process, const task::Outcome& outcome) const;
  std::vector<Extra> extras();
  int calls_for(const Process& process) const;
  int snapshots() const;
  bool is_enough() const;
  void begin_anew_host_synchronous(Process& process);
  Timed conclude() const;
  Process& candidate() { return processes_[0]; }
  Process& baseline() { return processes_[1]; }

  // Constant after construction.
  Judge& judge_;
  const StageLimits& limits_;
  RunOptions options_;
  const Nvml* nvml_;

  bool is_open_ = false;  // The judge has memory for it.
  std::mt19937_64 random_;
  std::vector<Process> processes_;  // The candidate, the baseline.
  Clock::TimePoint start_;          // Of the pairs.
  int64_t verified_ = 0;
  int64_t late_ = 0;
  Work work_;
  BatchMemory memory_;
  int calls_fit_ = 1;  // Into what was free when it was last asked.
  task::Clocks clocks_;
};

}  // namespace mc::timing

#endif  // MC_TIMING_COMPARISON_RUN_H_
