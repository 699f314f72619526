// SPDX-License-Identifier: Apache-2.0
//
// A rollout: generates answers to prompts and has them judged.  Both happen concurrently.
//
// Turns are generated in waves: first turns of all samples, then second turns of failed ones, and
// so on. A wave begins when the previous one is judged, so the batches depend on the verdicts and
// not on the time of their arrival: the same policy generates bit-identical episodes.
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

// One prompt of a step.  `prompt` must outlive the prompt_group.
struct PromptGroup {
  const Prompt* prompt = nullptr;
  std::vector<model::Message> messages;  // The messages of the prompt, or of a replay.
  bool is_replay = false;
};

struct RolloutOptions {
  int64_t step = 0;
  int64_t samples = 8;  // The number of answers for each prompt_group.
  int64_t turns = 1;    // The maximum number of turns; an episode ends at its first pass.
  // The options of the generator; their seed is the step's own.  A turn is skipped if its prompt
  // leaves no room for tokens_max tokens within `positions_max`.
  model::GenerateOptions generate;
  int64_t positions_max = 0;
  Writer writer = Writer::kGenerator;
};

struct RolloutTimes {
  double generate_s = 0;
  // The time of waiting for verdicts after all answers of a wave were generated.
  double wait_s = 0;
};

// Returns the episodes ordered by prompt_group and sample.  Fails if the judge fails.
Result<std::vector<Episode>> roll_out(const Policy& policy, const model::Model& model, Judge& judge,
                                      std::span<const PromptGroup> prompt_groups,
                                      const RolloutOptions& options, RolloutTimes& times);

}  // namespace mc::loop

#endif  // MC_LOOP_ROLLOUT_H_
