// SPDX-License-Identifier: Apache-2.0
//
// Late inputs: some calls of a batch get others after the batch began, so that none can be computed
// ahead of its turn.  Pure.
//
// Nothing in a batch waits for the judge, so whether new inputs came before their call began is
// told by timestamps of the supervisor's: *late* inputs came surely before (the call must show
// them), *early* calls were surely over, all others may be torn.  Only late ones are judged.
#ifndef MC_TIMING_LATE_INPUTS_H_
#define MC_TIMING_LATE_INPUTS_H_

#include <cstdint>
#include <random>
#include <vector>

namespace mc::timing {

// How many calls of a batch of so many get late inputs; 0 where it is too short.
int num_late(int calls);

// So many calls of its last third, the very last one left out: a cheat can repair that.
std::vector<int64_t> pick_late(int calls, std::mt19937_64& random);

// By the supervisor's clock, from the gate's opening.
struct Replacement {
  double asked_us = 0;     // When the judge was asked to replace inputs,
  double replaced_us = 0;  // when it had done so,
  double done_us = 0;      // and when all calls were done.
};
enum class Arrival { kEarly, kTorn, kLate };
Arrival arrival_of(int64_t call, int calls, const Replacement& replacement);

// Of a batch's late inputs.
struct LateCount {
  int64_t late = 0;
  int64_t ignored = 0;  // So many calls do not show theirs.
};
// Whether calls were computed before their turn: at least four of five show no late input.
bool is_ahead(const LateCount& count);

}  // namespace mc::timing

#endif  // MC_TIMING_LATE_INPUTS_H_
