// SPDX-License-Identifier: Apache-2.0
//
// Accounting: what batches say of a call, and of two processes beside each other.  Pure.
//
//   a batch's time = the supervisor's clock, from the gate's opening until the process says that
//                    all is done, less what lies there beside the device's work
//
// What lies there is taken from the baseline, which runs no candidate code, so that its device
// events can be believed: the median of clock less events.  Nothing that the candidate says makes
// its time shorter.  Who says too early that all is done gains nothing by it: outputs are copied by
// the judge right after, and the time until then, less the same of the baseline, is a bound.
// docs/timing.md.
#ifndef MC_TIMING_ACCOUNTING_H_
#define MC_TIMING_ACCOUNTING_H_

#include <string>
#include <vector>

#include "task/verdict.h"
#include "timing/traced_batch.h"

namespace mc::timing {

// By the supervisor's clock, from the gate's opening; of one process all have as many calls.
struct BatchSample {
  int calls = 1;
  double done_us = 0;    // Until the process said that all is done,
  double copied_us = 0;  // until the judge had copied outputs; 0 where it copied none.
  double events_us = 0;  // Between two events of the device, as the process says.
};

struct Samples {
  std::vector<BatchSample> batches;
  std::vector<TracedBatch> traced;
  bool is_enqueued = true;  // Else it tells where outputs lie only once all is done.
  double least_us = 0;      // A call of it is not believed to take less (ComparisonRun).
};

struct Comparison {
  task::Estimate time_us;
  task::Estimate time_baseline_us;
  task::Estimate speedup;          // The baseline's time over the other's, pair by pair.
  double claimed_us = 0;           // A call, until all was said to be done.
  std::vector<std::string> notes;  // For a person: why more than that counts.
};

// REQUIRES: as many batches of both, at least one, each pair taken together.
Comparison compare(const Samples& own, const Samples& baseline);

// Whether the kernels ran in the time that a call is said to take, as far as tracing lengthens
// them.  Else theirs counts, so nothing is gained by being slow only where one is traced.
bool trace_confirms(double claimed_us, double busy_us);

}  // namespace mc::timing

#endif  // MC_TIMING_ACCOUNTING_H_
