// SPDX-License-Identifier: Apache-2.0
//
// The episodes of an RL run.  Each part of a step (its first draw, a refill, an evaluation) has a
// name, under which its episodes are kept in the run's store, so a resumed run finds them again.
#ifndef MC_LOOP_EPISODE_SOURCE_H_
#define MC_LOOP_EPISODE_SOURCE_H_

#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "loop/judge.h"
#include "loop/rl.h"
#include "loop/rollout.h"
#include "store/store.h"

namespace mc::loop {

class EpisodeSource {
 public:
  // `options`, `policy` and `model` must outlive the source.
  EpisodeSource(const RlOptions& options, const Policy& policy, const model::Model& model)
      : options_(options), policy_(policy), model_(model) {}

  // Opens the store of the run folder, and that of the run to replay.
  Status open();

  // The episodes that the store has under `name`; else those of the run to replay, or new ones,
  // whose groups are numbered from `group_first` on.  The time of making new ones is added to
  // `times`.
  Result<std::vector<Episode>> get(const std::string& name,
                                   std::span<const PromptGroup> prompt_groups,
                                   const RolloutOptions& rollout, int64_t group_first,
                                   RolloutTimes& times);

  // Appends episodes that the policy learns from to episodes.jsonl.
  Status list(std::span<const Episode> episodes);

 private:
  Result<std::vector<Episode>> replayed(const std::string& name) const;
  Result<std::vector<Episode>> generated(std::span<const PromptGroup> prompt_groups,
                                         const RolloutOptions& rollout, RolloutTimes& times);

  const RlOptions& options_;
  const Policy& policy_;
  const model::Model& model_;
  std::optional<store::RunFolder> store_;
  std::optional<store::RunFolder> replay_;
  std::ofstream list_;
  std::unique_ptr<Judge> judge_;  // The verifier starts when the first answers are generated.
};

}  // namespace mc::loop

#endif  // MC_LOOP_EPISODE_SOURCE_H_
