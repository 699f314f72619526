// SPDX-License-Identifier: Apache-2.0
//
// Charges: how much of a burst's time counts, and how long a burst should be.  Pure; the rules of
// docs/timing.md, "What counts".
//
// Device events are precise, but the process that runs the candidate tells them; the supervisor's
// clock is trusted, but sees what lies between processes too.  Events count as far as the clock
// agrees until the process says that all is done.  It may say so too early; then the judge, who
// needs the device to copy outputs, is late, which series.h charges.
#ifndef MC_TIMING_CHARGES_H_
#define MC_TIMING_CHARGES_H_

#include <limits>
#include <vector>

namespace mc::timing {

struct ChargeRules {
  // From one kernel's end to the next one's start: as a rule, what is believed of a candidate, and
  // what of a baseline.  Kernels that move much memory leave more than others: a candidate's may be
  // so much above its baseline's, too.
  double gap_us = 1.0;
  double gap_us_min = 0.85;
  double gap_us_max = 1.25;
  double gap_us_above = 0.25;
  double gap_us_max_baseline = 2.0;
  double host_us_free = 150;         // A call: host time that queueing hides,
  double host_us_free_launch = 15;   // and for each launch.
  double clock_slack_us = 40;        // Of a burst: what the clock may differ by,
  double clock_slack_share = 0.005;  // and as a share of the events' time.
  double look_slack_us = 100;        // Until outputs are copied, which takes a judge some time, and
  double look_slack_open_us = 800;   // of an open burst also a process that tells where they lie,
  double look_slack_open_call_us = 8;  // for each call.
};

// What was seen of one burst.
struct BurstReading {
  double events_us = 0;   // As the process says.
  double bracket_us = 0;  // By the supervisor's clock.
  double looked_us = 0;   // The same, until outputs were copied; 0 where none were.
  double queue_us = 0;    // The same, until it was queued; 0 for an open burst.
  int calls = 1;
  double launches = 1;      // A call.
  bool is_trusted = false;  // A baseline's.
};

// What is known of an arm's gaps: its time with them, and what CUPTI says of the time without.
struct TracedCall {
  double call_us = 0;         // By the events of bursts that were not traced.
  double kernel_us = 0;       // All kernels, copies and fills of a call together,
  double launches = 0;        // so many of them,
  bool is_one_stream = true;  // one after the other.
};

// The time between two launches of a process.  It differs by a tenth from one process to the next,
// alike for all kernels, which is more than all else about small ones.
struct LaunchGap {
  double us = 0;
  double launches = 0;       // A call.
  bool is_measured = false;  // From what was traced; else it is the usual one, or a bound of what
                             // is believed.
};

class Charges {
 public:
  explicit Charges(const ChargeRules& rules) : rules_(rules) {}

  // Learns from a baseline how far the clock is from the events where nobody tampers with them.
  void note_baseline(const BurstReading& burst);

  // Whether the clock confirms the events.  REQUIRES: a baseline was noted.
  bool confirms(const BurstReading& burst) const;

  // Microseconds by which the clock exceeds the events, beyond what it did with the baseline at
  // least.  REQUIRES: a baseline was noted.
  double clock_excess_us(const BurstReading& burst) const;

  // By which outputs were copied after what counts of the burst, beyond what it took with the
  // baseline in the median; below 0, and confirmed, where none were.
  double look_excess_us(const BurstReading& burst) const;
  bool look_confirms(const BurstReading& burst) const;

  // Microseconds of the host's time that are charged for a call: all of it, where it is more than
  // queueing hides and than the device takes, or none.
  double host_us(const BurstReading& burst) const;

  // The gap of a process, as far as it can be believed: forged records gain no more than the range
  // allows.
  LaunchGap gap_of_baseline(const TracedCall& traced) const;
  LaunchGap gap(const TracedCall& traced, const LaunchGap& baseline) const;

  // Microseconds of a call, behind which there is such a gap: until all was done, or until outputs
  // were copied.  REQUIRES: a baseline was noted.
  enum class Until { kDone, kCopied };
  double call_us(const BurstReading& burst, double gap_us, Until until = Until::kDone) const;

 private:
  LaunchGap gap_up_to(double most_us, const TracedCall& traced) const;
  double burst_us(const BurstReading& burst) const;
  double look_overhead_us() const;

  ChargeRules rules_;
  double overhead_us_ = std::numeric_limits<double>::infinity();  // Of the clock; the least seen.
  std::vector<double> look_overheads_us_;                         // Sorted.
};

struct BurstLimits {
  double burst_us = 20000;  // What a burst should last.
  int calls_max = 400;
  int launches_max = 800;  // A device's queue holds about a thousand.
};

struct CallCost {
  double us = 0;  // By the clock: an upper bound.
  double launches = 1;
  int calls_fit = 1;  // Into the device's memory.
};

// How many calls a burst should have; at least one.
int choose_calls(const BurstLimits& limits, const CallCost& call);

}  // namespace mc::timing

#endif  // MC_TIMING_CHARGES_H_
