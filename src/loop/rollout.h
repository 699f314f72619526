// SPDX-License-Identifier: Apache-2.0
//
// From prompts to judged episodes.  Answers are judged while others are still generated.
//
// Turns go in waves: first turns of all samples, then second turns of those that failed, and so on.
// A wave begins when the one before is judged, so what is generated together depends on verdicts
// and not on when they came: the same policy writes the same episodes to the last bit.
#ifndef MC_LOOP_ROLLOUT_H_
#define MC_LOOP_ROLLOUT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/result.h"
#include "loop/episode.h"
#include "loop/judge.h"
#include "loop/policy.h"
#include "model/generate.h"
#include "model/model_folder.h"

namespace mc::loop {

// One prompt of a step.  `prompt` outlives it.
struct Slot {
  const Prompt* prompt = nullptr;
  std::vector<model::Message> messages;  // The prompt's own, or a replay's.
  bool is_replay = false;
};

struct RolloutOptions {
  int64_t step = 0;
  int64_t samples = 8;  // The answers of each slot.
  int64_t turns = 1;    // At most; an episode ends with its first pass.
  // The seed is the step's own.  A turn whose prompt leaves no room for tokens_max within
  // `positions_max` is not taken.
  model::GenerateOptions generate;
  int64_t positions_max = 0;
  Writer writer = Writer::kGenerator;
};

struct RolloutTimes {
  double generate_s = 0;
  double wait_s = 0;  // For verdicts, when all of a wave was generated.
};

// The order is by slot and sample.  Fails where the judge does.
Result<std::vector<Episode>> roll_out(const Policy& policy, const model::Model& model, Judge& judge,
                                      std::span<const Slot> slots, const RolloutOptions& options,
                                      RolloutTimes& times);

}  // namespace mc::loop

#endif  // MC_LOOP_ROLLOUT_H_
