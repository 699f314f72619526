// SPDX-License-Identifier: Apache-2.0
//
// The queue of prompts: each step takes the next tasks in the epoch's order, or replays failed
// answers (BDR).
//
// A step calls choose() for its groups, refill() to replace groups without spread, and at its end
// remember() with the episodes.  The state depends on these calls alone: the same calls make the
// same choices again.
#ifndef MC_LOOP_PROMPT_QUEUE_H_
#define MC_LOOP_PROMPT_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "loop/episode.h"
#include "loop/rollout.h"
#include "rl/bdr.h"
#include "train/packing.h"

namespace mc::loop {

struct PromptQueueOptions {
  int64_t prompts = 16;  // The number of groups in a step.
  uint64_t seed = 0;
  rl::RetryOptions retry;
  // False: a replay contains only the task, as a control experiment for BDR.
  bool replays_show_failure = true;
  // Returns false for messages that leave no room for an answer; such a replay is not kept.
  std::function<bool(const std::vector<model::Message>&)> leaves_room;
};

// Counts over the groups of a step, and the retry buffer after the step.
struct RetryCounts {
  size_t num_groups = 0;
  size_t num_all_failed = 0;
  size_t num_replays = 0;
  size_t num_solved = 0;  // Replayed groups in which an answer passed.
  size_t buffer_size = 0;
  double age_mean = 0;  // The mean age of the buffer's items, in steps.
};

class PromptQueue {
 public:
  // REQUIRES: prompts are not empty.
  PromptQueue(std::vector<Prompt> prompts, const PromptQueueOptions& options);
  PromptQueue(const PromptQueue&) = delete;
  PromptQueue& operator=(const PromptQueue&) = delete;

  const std::vector<Prompt>& prompts() const { return prompts_; }
  const train::DataPosition& position() const { return position_; }

  // Chooses the prompts of a step.
  std::vector<PromptGroup> choose(int64_t step);
  // Chooses the next prompts in the epoch's order, without replays.
  std::vector<PromptGroup> refill(size_t count);

  // Removes solved tasks from the retry buffer, and adds tasks on which all samples failed.
  RetryCounts remember(int64_t step, std::span<const Episode> episodes);

 private:
  const Prompt& next_prompt();
  std::optional<rl::FailedCandidate> failure_of(std::span<const Episode> group) const;

  // This and the next two members are constant after construction.
  const std::vector<Prompt> prompts_;
  const PromptQueueOptions options_;
  std::map<std::string, const Prompt*> by_id_;
  rl::RetryBuffer retries_;
  train::DataPosition position_;
};

}  // namespace mc::loop

#endif  // MC_LOOP_PROMPT_QUEUE_H_
