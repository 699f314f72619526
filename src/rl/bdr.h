// SPDX-License-Identifier: Apache-2.0
//
// Buffered Dynamic Retry (BDR): a task on which all samples of a group failed comes back in a later
// step as a replay.  A replay is a new prompt that contains the task, one failed candidate and its
// feedback.  It contains the candidate's code, not the whole answer: an answer with long reasoning
// would not fit.
//
// A group without a pass teaches little; with failed code and feedback in the prompt, the same task
// is easier.  The samples of a replay are generated from the new prompt, so they are on-policy. The
// first turn is trained and PrimeEcho applies, as for any other prompt.
// The order of calls:
//   each prompt slot:  draw(uniform({seed, step, slot}), step)     a replay with probability p
//   end of the step:   solved(task) for each group with a pass, then insert(failures of all groups)
//
// The state of a RetryBuffer depends on these calls alone: the same calls reproduce it.
#ifndef MC_RL_BDR_H_
#define MC_RL_BDR_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "task/verdict.h"

namespace mc::rl {

// The stage at which a candidate failed, from the earliest to the latest.
enum class Stage { kExtraction, kLegality, kRecord, kCompile, kLoad, kInit, kForward, kComparison };

// The stage of a failed outcome.  Empty for outcomes that are not the candidate's failure: Passed,
// Unsupported, Infra.
std::optional<Stage> failed_stage(const task::Outcome& outcome);

// A failed candidate, with all that the prompt of a replay needs.
struct FailedCandidate {
  std::string task;
  std::string prompt;   // The caller's key of the task's prompt.
  std::string code;     // The result of code_of.
  std::string outcome;  // The result of task::outcome_name
  Stage stage = Stage::kExtraction;
  std::string feedback;  // The feedback that the model reads.
  double s = -1;         // Below kScorePassed.
  double q = 0;          // The share of trials that passed.
  uint64_t step = 0;     // The step in which the candidate was generated.
  uint64_t group = 0;    // The index of its group within that step.
  bool operator==(const FailedCandidate&) const = default;
};

// The module of an answer, in a code fence.  For an answer without a module, the text without its
// reasoning.
std::string code_of(std::string_view answer);

// The identity of a failed candidate: content_hash of its task and code.
std::string retry_key(const FailedCandidate& candidate);

// True if a group enters the buffer: at least one turn has a score, and no turn of any sample
// passed. `samples`: the scores of each sample's turns; a turn without a score is infra or
// unsupported.
bool is_all_failed(std::span<const std::vector<std::optional<double>>> samples);

// The index of the group's candidate to keep: highest s, then latest stage, then shortest code,
// then smallest key. REQUIRES: candidates are not empty.
size_t choose_failure(std::span<const FailedCandidate> candidates);

struct RetryOptions {
  size_t capacity = 256;     // At least 1.
  double probability = 0.1;  // The probability that a prompt slot is a replay; 0 switches BDR off.
  uint32_t replays_max = 2;  // Maximum replays of a task until it is solved; at least 1.
};

struct RetryItem {
  FailedCandidate candidate;
  uint64_t ready_at = 0;  // The first step that may draw the item.
  bool operator==(const RetryItem&) const = default;
};

// The whole state of a RetryBuffer except its options.
struct RetryState {
  std::vector<RetryItem> items;  // Oldest first, at most one item for each task.
  // For each task, how often it was replayed since it was last solved.
  std::map<std::string, uint32_t> replays;
  bool operator==(const RetryState&) const = default;
};

// A queue that replays the oldest item first.  Not thread-safe.
class RetryBuffer {
 public:
  // REQUIRES: each option is within its range.
  explicit RetryBuffer(const RetryOptions& options);

  const RetryState& state() const { return state_; }

  // Adds the failures of one step, given in any order, sorted by (step, group).  A newer failure of
  // a task replaces the older one and takes its place in the queue.  A task that was replayed
  // replays_max times is ignored.  Beyond the capacity, the oldest items are dropped.
  void insert(std::vector<FailedCandidate> failures);

  // Removes a task of which an answer passed, and resets its number of replays.  The answer may
  // belong to a replay or to a fresh prompt.
  void solved(std::string_view task);

  // The candidate that a prompt slot of this step replays: if u < probability, that of the oldest
  // item that is ready, else nothing.  No item is drawn in the step that inserted it, nor twice in
  // a step.  An item stays in its place until its task is solved, it is replaced, or this draw is
  // its last replay. `u` is in [0, 1).
  std::optional<FailedCandidate> draw(double u, uint64_t step);

  size_t size() const { return state_.items.size(); }
  // Mean of step - candidate.step over the items; 0 without items.
  double age_mean(uint64_t step) const;

 private:
  void insert_one(FailedCandidate failure);
  bool is_exhausted(const std::string& task) const;
  std::vector<RetryItem>::iterator find(std::string_view task);

  RetryOptions options_;  // Constant after construction.
  RetryState state_;
};

}  // namespace mc::rl

#endif  // MC_RL_BDR_H_
