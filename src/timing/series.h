// SPDX-License-Identifier: Apache-2.0
//
// Series: what the bursts of one arm say of its calls, and of two arms beside each other.  Pure;
// docs/timing.md, "What counts".
#ifndef MC_TIMING_SERIES_H_
#define MC_TIMING_SERIES_H_

#include <string>
#include <vector>

#include "task/verdict.h"
#include "timing/charges.h"
#include "timing/timed_process.h"

namespace mc::timing {

struct Series {
  std::vector<BurstReading> samples;
  std::vector<TracedBurst> traced;
};

// Standard deviations between processes, which repetition inside one cannot see: of a call's time
// as a share, of the gap between launches where it was measured and taken off, and of each other
// one in a call.
struct SpreadRules {
  double share = 0.0025;
  double gap_measured_us = 0.03;
  double gap_us = 0.1;
};

struct Comparison {
  task::Estimate time_us;
  task::Estimate time_baseline_us;
  task::Estimate speedup;  // The baseline's time over the other's, pair by pair.
  double gap_us = 0;       // What was taken off each call.
  double gap_baseline_us = 0;
  double claimed_us = 0;  // What the bursts that are not traced say of a call.
};

// How far traced kernels may take longer than a call is said to take, in which they all ran.
struct TraceRules {
  double tolerance = 1.1;
  double slack_us = 1;
};
bool trace_confirms(const TraceRules& rules, double claimed_us, const Series& own);

// Where the traced kernels do not confirm the time, theirs counts.
// REQUIRES: as many samples of both, at least one, each pair taken together.
Comparison compare(const Charges& charges, const SpreadRules& spread, const Series& own,
                   const Series& baseline);

// Whether more bursts would hardly narrow the speed-up's interval: what these differ by is little
// beside what repetition cannot see.  REQUIRES: as `compare`.
bool is_precise(const SpreadRules& spread, const Series& own, const Series& baseline);

// Of the half of an arm's bursts with the least time a call, which make its median what it is, the
// one whose outputs were copied soonest.  What else happens on a machine delays a judge and never
// hastens it: where this burst is confirmed, the arm is as fast as its median; where it is not,
// none of that half was done when it was said to be; the clock until outputs were copied counts.
// REQUIRES: a sample.
const BurstReading& soonest_seen(const Charges& charges, const Series& series);

// What is odd about an arm's bursts, for a person to read.
std::vector<std::string> notes_on(const Charges& charges, const Series& series);

}  // namespace mc::timing

#endif  // MC_TIMING_SERIES_H_
