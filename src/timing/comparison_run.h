// SPDX-License-Identifier: Apache-2.0
//
// Timing: a candidate against a baseline, by turns, on a device that nobody else uses meanwhile.
//
//   warm-up, unnoticed       a few open bursts and gated ones, beside others on the device; then,
//                            alone, one of the size that follows
//   pairs                    one burst of each, in random order; a sample each
//   a traced burst           who owns the kernels that run, and how long each takes
//
// Every burst of the candidate's, warm-up or not, is followed by a look of the judge at outputs
// that are chosen then.  What the device's events say counts as far as the supervisor's clock
// agrees; where it does not, its clock counts.  docs/timing.md.
#ifndef MC_TIMING_COMPARISON_RUN_H_
#define MC_TIMING_COMPARISON_RUN_H_

#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/result.h"
#include "task/verdict.h"
#include "timing/batch_size.h"
#include "timing/charges.h"
#include "timing/device_speed.h"
#include "timing/nvml.h"
#include "timing/series.h"
#include "timing/timed_process.h"

namespace mc::timing {

struct TimingOptions {
  BurstLimits burst;
  ChargeRules charge;
  // So many pairs, and more until the candidate ran for so long or more would hardly tell more; but
  // no more than the maximum and than the budget allows, down to the minimum.
  int pairs = 13;
  double timed_us = 50'000;
  int pairs_max = 40;
  int pairs_min = 7;
  double budget_s = 6;    // For the pairs.
  int bursts_traced = 2;  // Among the pairs, and one more behind them.
  SpreadRules spread;
  bool is_trusted = false;  // Both arms are baselines: nothing is looked at or charged.
  int looks = 4;            // At outputs of each burst of the candidate's.
  uint64_t seed = 0;        // Of what is looked at, and in which order.

  // A reward's precision: bursts as long, since what a process may gain by what it claims is so
  // much a burst, but few of them.
  void make_quick() {
    pairs = pairs_max = 5;
    pairs_min = 3;
    bursts_traced = 1;
  }
};

struct Timed {
  task::Performance performance;    // Without floor, kernels and own_share.
  std::vector<TracedBurst> traced;  // Some of the candidate's.
  double claimed_us = 0;            // What its other bursts say of a call (series.h).
  bool is_idle = false;  // Some burst launched less than it had calls, unlike the baseline's.
  Work work;             // Of one call.
};

class Timing {
 public:
  // REQUIRES: what it refers to outlives it, and so do the sessions that it warms up.
  Timing(Judge& judge, const StageLimits& limits, const TimingOptions& options, const Nvml* nvml);
  Timing(const Timing&) = delete;
  Timing& operator=(const Timing&) = delete;
  ~Timing();  // Gives back what memory the judge still has for it.

  // Both decide `Wrong` where an output is wrong, and what else may happen to a running candidate.
  // Others may use the device while the sessions warm up:
  Result<std::optional<task::Outcome>> warm_up(Session& candidate, Session& baseline);
  // but not from here on.  REQUIRES: warm_up decided nothing.
  Stage<Timed> run();

 private:
  using Decided = std::optional<task::Outcome>;
  enum class Traced { kNo, kYes };
  struct Arm {
    TimedArm timed;
    bool is_candidate;
    Series series{};                                    // Of the bursts that count.
    int calls = 1;                                      // In a burst.
    int calls_room = 0;                                 // What its memory has room for.
    int calls_limit = std::numeric_limits<int>::max();  // What was queued without blocking.
    double call_us = 0;                                 // As the last burst found,
    double launches = 1;    // with so many kernels, copies and fills a call.
    int blocked = 0;        // Bursts, of those that count.
    bool is_early = false;  // Its work began before the gate was opened.
    bool is_idle = false;   // Whether a burst launched less than it had calls.
    double queue_us_least = std::numeric_limits<double>::infinity();  // Of the host, a call.
    void open();  // From here on it queues nothing behind a gate.
  };
  Status plan();
  Result<Decided> open_arms(Session& candidate, Session& baseline);
  Result<Decided> prepare(Arm& arm, int calls);
  Result<Decided> warm_up_arm(Arm& arm);
  Result<Decided> settle();
  Result<Decided> settle_arm(Arm& arm);
  Status find_room();
  Status close();
  void learn(Arm& arm, const BurstTime& burst) const;
  bool is_short(const Arm& arm) const;
  Result<Decided> lengthen(Arm& arm, BurstTime& burst);
  Result<Decided> take_all();
  Result<Decided> take_pairs();
  Result<Decided> sample_both(std::array<BurstTime, 2>& bursts);
  Result<Decided> trace_at_the_end();
  Result<Decided> recover(Arm& arm);
  Result<Decided> begin_anew_open(Arm& arm);
  bool is_enough(double passed_s) const;
  Result<Decided> trace(Arm& arm);
  Result<Decided> sample(Arm& arm, Traced traced, BurstTime& burst);
  task::Outcome wrong_in_a_series(const std::string& problem) const;
  Result<Decided> fate(const Arm& arm, const task::Outcome& outcome) const;
  int calls_wanted(const Arm& arm) const;
  int calls_for(const Arm& arm) const;
  static BurstReading reading_of(const Arm& arm, const BurstTime& burst);
  bool is_doubtful(const std::array<BurstTime, 2>& bursts);
  void conclude(Timed& timed) const;

  // Constant after construction.
  Judge& judge_;
  const StageLimits& limits_;
  TimingOptions options_;
  const Nvml* nvml_;

  bool is_open_ = false;  // The judge has memory for it.
  std::mt19937_64 random_;
  std::vector<Arm> arms_;  // The candidate, the baseline.
  int64_t verified_ = 0;
  int retaken_ = 0;
  Charges charges_;
  Work work_;
  BurstRoom room_;
  int calls_fit_ = 1;  // Into what was free when it was last looked at.
  task::Clocks clocks_;
};

}  // namespace mc::timing

#endif  // MC_TIMING_COMPARISON_RUN_H_
