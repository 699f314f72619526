// SPDX-License-Identifier: Apache-2.0
#include "loop/episode_source.h"

#include <ios>

#include "core/check.h"
#include "core/fd.h"
#include "loop/rl_settings.h"
#include "train/checkpoint.h"

namespace mc::loop {

Status EpisodeSource::open() {
  if (options_.replay) {
    MC_TRY(replay_, store::open_run_to_read(*options_.replay), "--replay");
  }
  MC_TRY(store_,
         train::open_run(options_.run, "rl", settings_json(options_),
                         options_.resume ? train::Existing::kResume : train::Existing::kRefuse),
         "--out");
  list_.open(options_.run / "episodes.jsonl", std::ios::binary);
  return ok();
}

Result<std::vector<Episode>> EpisodeSource::get(const std::string& name,
                                                std::span<const PromptGroup> prompt_groups,
                                                const RolloutOptions& rollout, int64_t group_first,
                                                RolloutTimes& times) {
  MC_CHECK(store_.has_value());
  MC_TRY(const auto kept, store_->run.text(name), "the store");
  if (kept) return episodes_from_lines(*kept);
  auto episodes = replay_ ? replayed(name) : generated(prompt_groups, rollout, times);
  if (!episodes) return episodes;
  if (!replay_) {
    for (Episode& episode : *episodes) episode.group += group_first;
  }
  MC_TRY_VOID(store_->run.put(name, json_lines(*episodes)), "the store");
  return episodes;
}

Status EpisodeSource::list(std::span<const Episode> episodes) {
  if (list_ << json_lines(episodes) << std::flush) return ok();
  return system_error(ErrorCode::kIo, "cannot write episodes.jsonl");
}

Result<std::vector<Episode>> EpisodeSource::replayed(const std::string& name) const {
  MC_TRY(const auto found, replay_->run.text(name), "--replay");
  if (found) return episodes_from_lines(*found);
  return invalid(options_.replay->string() + " has no such episodes");
}

Result<std::vector<Episode>> EpisodeSource::generated(std::span<const PromptGroup> prompt_groups,
                                                      const RolloutOptions& rollout,
                                                      RolloutTimes& times) {
  if (judge_ == nullptr) {
    MC_TRY(judge_, Judge::start(options_.judge, options_.score, &store_->run), "rl");
  }
  return roll_out(policy_, model_, *judge_, prompt_groups, rollout, times);
}

}  // namespace mc::loop
