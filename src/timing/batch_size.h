// SPDX-License-Identifier: Apache-2.0
//
// BurstRoom: what timing takes of a device's memory, and how many calls of a burst that allows.
// Pure.
//
// Inputs lie there three times (the judge's own, and where each arm sees them), outputs in an arena
// for each arm, together with what a forward allocates on its way; the judge needs room to run the
// reference and to compare.
#ifndef MC_TIMING_BATCH_SIZE_H_
#define MC_TIMING_BATCH_SIZE_H_

namespace mc::timing {

struct CallBytes {
  double inputs = 0;
  double outputs = 0;
};

struct BurstRoom {
  CallBytes call;
  double share = 0.8;  // Of free memory; the rest is for what contexts and allocators round up.

  // Of one arm, for so many calls.
  double arena_bytes(int calls) const;
  // How many calls fit into free memory; 0 where not even one does.
  int calls_max(double free_bytes) const;

 private:
  double scratch_bytes() const;
  double judge_bytes() const;
};

}  // namespace mc::timing

#endif  // MC_TIMING_BATCH_SIZE_H_
