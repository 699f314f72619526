// SPDX-License-Identifier: Apache-2.0
#include "loop/rollout.h"

#include <chrono>
#include <string>
#include <utility>

#include "core/check.h"
#include "core/hash.h"

namespace mc::loop {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The judgement of an answer cut off at the token limit.  It counts as no answer, whatever it
// contains: otherwise a correct kernel followed by endless text would score like a correct kernel.
Judgement judgement_of_cut(int64_t num_tokens) {
  const std::string feedback = "The answer was cut off after " + std::to_string(num_tokens) +
                               " tokens, before its end.  Write a shorter one.\n";
  task::Verdict verdict;
  verdict.outcome = task::Unextractable{};
  return {.outcome = task::outcome_name(verdict.outcome),
          .s = rl::training_score(verdict, {}),
          .q = 0,
          .nu = std::nullopt,
          .stage = rl::Stage::kExtraction,
          .feedback = feedback};
}

class Rollout {
 public:
  Rollout(const Policy& policy, const model::Model& model, Judge& judge,
          std::span<const PromptGroup> prompt_groups, const RolloutOptions& options)
      : policy_(policy),
        model_(model),
        judge_(judge),
        prompt_groups_(prompt_groups),
        options_(options) {
    MC_CHECK(options.samples > 0 && options.turns > 0);
    for (size_t group = 0; group < prompt_groups.size(); ++group) {
      MC_CHECK(prompt_groups[group].prompt != nullptr && !prompt_groups[group].messages.empty());
      for (int64_t sample = 0; sample < options.samples; ++sample) {
        const PromptGroup& prompt_group = prompt_groups[group];
        episodes_.push_back({.step = options.step,
                             .group = static_cast<int64_t>(group),
                             .sample = sample,
                             .task = prompt_group.prompt->task.id,
                             .is_replay = prompt_group.is_replay,
                             .prompt = {},
                             .tokens = {},
                             .log_probs = {},
                             .turns = {}});
        messages_.push_back(prompt_group.messages);
      }
    }
  }

  Result<std::vector<Episode>> complete(RolloutTimes& times) {
    std::vector<size_t> open(episodes_.size());
    for (size_t i = 0; i < open.size(); ++i) open[i] = i;
    for (int64_t turn = 0; turn < options_.turns && !open.empty(); ++turn) {
      MC_TRY_VOID(wave(turn, open, times), "turn " + std::to_string(turn + 1));
      open = still_open(open);
    }
    return std::move(episodes_);
  }

 private:
  // Generates one turn of the episodes in `open`; skips those whose prompt leaves no room.
  Status wave(int64_t turn, const std::vector<size_t>& open, RolloutTimes& times) {
    std::vector<model::Request> requests;
    std::vector<size_t> episode_of;
    for (const size_t i : open) {
      MC_TRY(std::vector<int32_t> prompt,
             model::tokens_of(model_, messages_[i], model::ChatEnd::kPrompt),
             "task " + episodes_[i].task);
      const auto length = static_cast<int64_t>(prompt.size());
      if (length + options_.generate.tokens_max > options_.positions_max) continue;
      const Episode& episode = episodes_[i];
      requests.push_back({std::to_string(episode.group), episode.sample, std::move(prompt)});
      episode_of.push_back(i);
    }
    model::GenerateOptions generate = options_.generate;
    generate.seed = derive_seed(generate.seed, "turn " + std::to_string(turn));
    std::vector<std::string> keys(requests.size());
    const Clock::time_point begin = Clock::now();
    policy_.generate(
        requests, generate,
        [&](size_t n, const model::Answer& answer) {
          Episode& episode = episodes_[episode_of[n]];
          // Each request of a wave is answered once.
          MC_CHECK(static_cast<int64_t>(episode.turns.size()) == turn);
          take(requests[n], answer, episode);
          if (!answer.is_stopped) return;
          const PromptGroup& prompt_group = prompt_groups_[static_cast<size_t>(episode.group)];
          keys[n] = judge_.submit(prompt_group.prompt->task, episode.turns.back().answer,
                                  prompt_group.prompt->dialect);
        },
        options_.writer);
    times.generate_s += seconds_since(begin);
    const Clock::time_point generated = Clock::now();
    for (size_t n = 0; n < keys.size(); ++n) {
      Turn& last = episodes_[episode_of[n]].turns.back();
      MC_CHECK(last.is_stopped == !keys[n].empty());  // The answers that ended were sent.
      if (!last.is_stopped) {
        last.judgement = judgement_of_cut(last.num_tokens);
        continue;
      }
      MC_TRY(last.judgement, judge_.wait(keys[n]), "task " + episodes_[episode_of[n]].task);
    }
    times.wait_s += seconds_since(generated);
    return ok();
  }

  void take(const model::Request& request, const model::Answer& answer, Episode& episode) const {
    Turn turn;
    turn.answer = model::valid_utf8(model_.tokenizer.decode(answer.tokens));
    turn.is_stopped = answer.is_stopped;
    turn.num_tokens = static_cast<int64_t>(answer.log_probs.size());
    if (episode.turns.empty()) {
      MC_CHECK(answer.log_probs.size() == answer.tokens.size() + (answer.is_stopped ? 1 : 0));
      episode.prompt = request.prompt;
      episode.tokens = answer.tokens;
      if (answer.is_stopped) episode.tokens.push_back(answer.end);
      episode.log_probs = answer.log_probs;
    }
    episode.turns.push_back(std::move(turn));
  }

  // The failed episodes that may still be repaired; their feedback becomes the next message.
  std::vector<size_t> still_open(const std::vector<size_t>& before) {
    std::vector<size_t> open;
    for (const size_t i : before) {
      if (episodes_[i].turns.empty()) continue;
      const Turn& last = episodes_[i].turns.back();
      if (!last.judgement.s || *last.judgement.s >= rl::kScorePassed) continue;
      add_repair_turn(last, messages_[i]);
      open.push_back(i);
    }
    return open;
  }

  const Policy& policy_;
  const model::Model& model_;
  Judge& judge_;
  const std::span<const PromptGroup> prompt_groups_;
  const RolloutOptions& options_;
  std::vector<Episode> episodes_;
  // The messages of each episode, up to its next turn.
  std::vector<std::vector<model::Message>> messages_;
};

}  // namespace

Result<std::vector<Episode>> roll_out(const Policy& policy, const model::Model& model, Judge& judge,
                                      std::span<const PromptGroup> prompt_groups,
                                      const RolloutOptions& options, RolloutTimes& times) {
  return Rollout(policy, model, judge, prompt_groups, options).complete(times);
}

}  // namespace mc::loop
