// SPDX-License-Identifier: Apache-2.0
//
// Rejection fine-tuning (RFT): answers that passed become conversations to learn from, drawn so
// that rare kinds of kernels count as much as frequent ones.
//
//   OUT/episodes.jsonl   every answer with its verdict (episode.h)
//   OUT/sft.jsonl        the drawn ones, as `sft` reads them
//   OUT/summary.json     counts, and the diversity before and after drawing
//   OUT/store.sqlite     what was sampled and judged: a run that was killed goes on with it, to the
//                        same bytes
//
// The passing answers of a task are clustered by the structure of their kernels (structure.h); its
// targets are drawn over clusters by turns, each from the answers of one.
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
  std::filesystem::path data;  // The file of read_prompts (episode.h)
  std::filesystem::path out;
  std::vector<std::string> judge;
  int64_t limit = 0;    // Tasks, the first ones of an order of the seed; 0 = all.
  int64_t samples = 8;  // The episodes of each task.
  int64_t turns = 1;    // The most of an episode, which ends with its first pass.
  int64_t targets = 4;  // The targets of each task, at most.
  int64_t repairs = 0;  // Failed answers of a solved task that become repairs, at most.
  model::GenerateOptions generate;
  PolicyOptions policy;
  uint64_t seed = 0;
};

struct RftSummary {
  int64_t tasks = 0;
  int64_t solved = 0;  // Tasks with an answer that passed.
  int64_t answers = 0;
  int64_t passed = 0;
  int64_t targets = 0;
  int64_t repairs = 0;  // Rows: two a failed answer.
  // Means over solved tasks.  Effective clusters are exp(entropy) of the clusters' shares: among
  // the answers that passed, and among the targets.
  double clusters = 0;
  double effective_before = 0;
  double effective_after = 0;
};

Result<RftSummary> run_rft(const RftOptions& options);

// ---- Pure parts ---------------------------------------------------------------------------------

// Numbers of `answers`, at most `count`, no text twice: clusters by turns, in an order of the seed,
// and within a cluster its answers in such an order.  `structures`: of each answer.
std::vector<size_t> draw_targets(std::span<const std::string> answers,
                                 std::span<const std::string> structures, int64_t count,
                                 uint64_t seed);

// The number of the passing answer whose lines differ least from those of the failed one, in any
// order, the first of equals: a repair shows what to change, where another kernel shows nothing.
size_t nearest_answer(const std::string& failed, std::span<const std::string> passing);

// exp(entropy) of the shares of equal texts; 0 without texts.
double effective_number(std::span<const std::string> texts);

}  // namespace mc::loop

#endif  // MC_LOOP_RFT_H_
