// SPDX-License-Identifier: Apache-2.0
//
// How many calls a batch has, and what that takes of a device's memory.  Pure.
//
// What a process could gain by what it says is so much a batch, so it must not have short ones by
// having been slow as they were measured out: the baseline says how many calls there are; a faster
// candidate has more, and one that is much slower has fewer, but is believed no faster than half of
// that (Samples::least_us).
#ifndef MC_TIMING_BATCH_SIZE_H_
#define MC_TIMING_BATCH_SIZE_H_

#include <cstdint>

namespace mc::timing {

struct BatchLimits {
  double batch_us = 20000;  // What a batch should last.
  int calls_max = 400;
  int launches_max = 800;      // A device's queue holds about a thousand.
  double slowdown_max = 2;     // A candidate's batch may last so much longer.
  double host_us = 150;        // A call: host time that queueing hides,
  double host_us_launch = 15;  // and for each launch.
};

struct CallCost {
  double us = 0;  // By the clock: an upper bound.
  double launches = 1;
};

// At least one.
int choose_calls(const BatchLimits& limits, const CallCost& baseline, int calls_fit);
int choose_calls_beside(const BatchLimits& limits, const CallCost& candidate,
                        const CallCost& baseline, int calls_fit);

// Whether a call keeps the host busy for longer than queueing hides, and than the device takes.
bool is_host_bound(const BatchLimits& limits, double enqueue_call_us, const CallCost& cost);

struct CallBytes {
  double inputs = 0;
  double outputs = 0;
};

// Inputs lie there three times (the judge's own, and where each process sees them), outputs in an
// arena for each process, together with what a forward allocates on its way; the judge needs room
// to run the reference and to compare, and for inputs that come late.
struct BatchMemory {
  CallBytes call;
  double share = 0.8;  // Of free memory; the rest is for what contexts and allocators round up.

  // Of one process, for so many calls.
  double arena_bytes(int calls) const;
  // How many calls fit into free memory; 0 where not even one does.
  int calls_max(double free_bytes) const;

 private:
  double scratch_bytes() const;
  double judge_bytes() const;
};

}  // namespace mc::timing

#endif  // MC_TIMING_BATCH_SIZE_H_
