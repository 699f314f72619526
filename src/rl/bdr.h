// SPDX-License-Identifier: Apache-2.0
//
// Buffered Dynamic Retry (BDR): tasks on which all samples of a group failed come back later as a
// repair: a fresh prompt of two parts, the task and one failed candidate with its feedback.  The
// candidate's code is kept, not its whole answer: with long reasoning no replay would fit.
//
// A group without one pass teaches little by itself; with the failed code and its feedback in the
// prompt the same task is easier.  A replay is a new prompt, so what is sampled for it is
// on-policy; its first turn is trained and PrimeEcho holds for it as for any other.
// The order:
//   each prompt slot:  draw(uniform({seed, step, slot}), step)     a replay with probability p
//   end of the step:   solved(task) for each group with a pass, then insert(failures of all groups)
//
// RetryBuffer follows from these calls alone: the same ones make it again.
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

// How far a candidate came before it failed, in order.
enum class Stage { kExtraction, kLegality, kRecord, kCompile, kLoad, kInit, kForward, kComparison };

// Empty for outcomes that are no failure of the candidate's: Passed, Unsupported, Infra.
std::optional<Stage> failed_stage(const task::Outcome& outcome);

// A failed candidate, with all that its repair's prompt needs.
struct FailedCandidate {
  std::string task;
  std::string prompt;   // A reference to the task's prompt, as the caller keeps them.
  std::string code;     // The result of code_of.
  std::string outcome;  // The result of task::outcome_name
  Stage stage = Stage::kExtraction;
  std::string feedback;  // The feedback that the model reads.
  double s = -1;         // Below kScorePassed.
  double q = 0;          // Share of trials passed.
  uint64_t step = 0;     // The step of the policy that wrote it.
  uint64_t group = 0;    // Its group's place in the step's order.
  bool operator==(const FailedCandidate&) const = default;
};

// The module of an answer between fences; an answer without a module is kept without its
// reasoning.
std::string code_of(std::string_view answer);

// Identifies what is replayed: content_hash of task and code.
std::string retry_key(const FailedCandidate& candidate);

// True if a group goes into the buffer: some verdict says something, and no turn of any sample
// passed.  `samples`: the scores of each sample's turns; empty ones are infra or unsupported.
bool is_all_failed(std::span<const std::vector<std::optional<double>>> samples);

// The one of a group to keep: highest s, then furthest stage, then shortest code, then least key.
// REQUIRES: candidates are not empty.
size_t choose_failure(std::span<const FailedCandidate> candidates);

struct RetryOptions {
  size_t capacity = 256;     // At least 1.
  double probability = 0.1;  // That a prompt slot is a replay; 0 switches BDR off.
  uint32_t replays_max = 2;  // The replays of a task, until it is solved; at least 1.
};

struct RetryItem {
  FailedCandidate candidate;
  uint64_t ready_at = 0;  // First step at which it may be drawn.
  bool operator==(const RetryItem&) const = default;
};

// All of a RetryBuffer but its options.
struct RetryState {
  std::vector<RetryItem> items;  // Oldest first, one a task.
  // Times a task was replayed and not solved; at most as many as the data has tasks.
  std::map<std::string, uint32_t> replays;
  bool operator==(const RetryState&) const = default;
};

// A queue, oldest out first.  Not for use from several threads at once.
class RetryBuffer {
 public:
  // REQUIRES: options are in their ranges.
  explicit RetryBuffer(const RetryOptions& options);

  const RetryState& state() const { return state_; }

  // The failures of one step, in any order: they go in by (step, group).  A newer failure of a task
  // takes the older one's place in the queue; a task that was replayed replays_max times is left
  // out; what is too many falls out, oldest first.
  void insert(std::vector<FailedCandidate> failures);

  // An answer to the task passed, a replay's or a fresh prompt's: its item goes, and its replays
  // are forgotten.
  void solved(std::string_view task);

  // The item that a prompt slot of this step replays: for u < probability the oldest item that is
  // ready, else nothing.  No item is drawn in the step that brought it, nor twice in a step.  The
  // item stays in its place until it is solved, replaced or, with this draw, replayed for the last
  // time. `u` is in [0, 1).
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
