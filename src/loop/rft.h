// SPDX-License-Identifier: Apache-2.0
//
// Rejection fine-tuning (RFT): answers that passed become training conversations.  They are drawn
// so that rare kinds of kernels count as much as frequent ones.
//
//   OUT/episodes.jsonl   every answer with its verdict (episode.h)
//   OUT/sft.jsonl        the drawn answers, in the format that `sft` reads
//   OUT/summary.json     counts, and the diversity before and after drawing
//   OUT/store.sqlite     sampled answers and verdicts, with which a killed run resumes and gives
//   the same
//                        bytes
//
// The passing answers of a task are clustered by the structure of their kernels (structure.h).  The
// training targets are drawn round-robin over the clusters.
#ifndef MC_LOOP_RFT_H_
#define MC_LOOP_RFT_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "loop/policy.h"

namespace mc::loop {

struct RftOptions {
  std::filesystem::path model;
  std::filesystem::path data;  // The file for read_prompts (episode.h).
  std::filesystem::path out;
  std::vector<std::string> judge;
  int64_t limit = 0;    // The number of tasks, taken from the start of a seeded order; 0 = all.
  int64_t samples = 8;  // The number of episodes for each task.
  int64_t turns = 1;    // The maximum turns of an episode; it ends at its first pass.
  int64_t targets = 4;  // The maximum number of targets for each task.
  // For each solved task, the maximum number of failed answers that become repair rows.
  int64_t repairs = 0;
  model::GenerateOptions generate;
  PolicyOptions policy;
  uint64_t seed = 0;
};

struct RftSummary {
  int64_t tasks = 0;
  int64_t solved = 0;  // The number of tasks with an answer that passed.
  int64_t answers = 0;
  int64_t passed = 0;
  int64_t targets = 0;
  int64_t repairs = 0;  // Rows, two for each failed answer.
  // Means over solved tasks.  The effective number of clusters is exp(entropy) of the clusters'
  // shares, among the passing answers (before) and among the targets (after).
  double clusters = 0;
  double effective_before = 0;
  double effective_after = 0;
};

Result<RftSummary> run_rft(const RftOptions& options);

// ---- Pure parts ---------------------------------------------------------------------------------

// Draws the indices of at most `count` answers, no text twice.  The draw is round-robin over the
// clusters in a seeded order, and takes the answers of a cluster in a seeded order.  `structures`:
// the structure of each answer.
std::vector<size_t> draw_targets(std::span<const std::string> answers,
                                 std::span<const std::string> structures, int64_t count,
                                 uint64_t seed);

// The index of the passing answer whose lines, in any order, differ least from those of the failed
// answer; the first of equals.  A similar target teaches what to change; a different kernel would
// not.
size_t nearest_answer(const std::string& failed, std::span<const std::string> passing);

// The exponential of the entropy of the shares of equal texts; 0 without texts.
double effective_number(std::span<const std::string> texts);

}  // namespace mc::loop

#endif  // MC_LOOP_RFT_H_
