// SPDX-License-Identifier: Apache-2.0
//
// What a run of reinforcement learning keeps beside its tensors and its place in the data.
#ifndef MC_LOOP_RUN_STATE_H_
#define MC_LOOP_RUN_STATE_H_

#include <cstdint>
#include <string>

#include "core/result.h"
#include "rl/bdr.h"
#include "rl/mirror_pop.h"

namespace mc::loop {

struct LoopState {
  rl::RetryState retries;
  rl::DriftWindow drifts;
  int64_t optimizer_steps = 0;  // Fewer than steps where updates were skipped.
};

std::string json_text(const LoopState& state);
// kInvalidInput for what json_text did not write.
Result<LoopState> loop_state_from_json(const std::string& text);

}  // namespace mc::loop

#endif  // MC_LOOP_RUN_STATE_H_
