// SPDX-License-Identifier: Apache-2.0
#include "loop/prompt_queue.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/check.h"
#include "rl/random.h"

namespace mc::loop {

PromptQueue::PromptQueue(std::vector<Prompt> prompts, const PromptQueueOptions& options)
    : prompts_(std::move(prompts)), options_(options), retries_(options.retry) {
  MC_CHECK(!prompts_.empty() && options.prompts > 0 && options_.leaves_room);
  for (const Prompt& prompt : prompts_) by_id_[prompt.task.id] = &prompt;
}

std::vector<PromptGroup> PromptQueue::choose(int64_t step) {
  const auto now = static_cast<uint64_t>(step);
  std::vector<PromptGroup> prompt_groups;
  for (uint64_t prompt_group = 0; prompt_group < static_cast<uint64_t>(options_.prompts);
       ++prompt_group) {
    const auto failed = retries_.draw(rl::uniform({options_.seed, now, prompt_group}), now);
    if (failed && by_id_.contains(failed->prompt)) {
      const Prompt& prompt = *by_id_[failed->prompt];
      prompt_groups.push_back({&prompt,
                               options_.replays_show_failure
                                   ? replay_messages(prompt, failed->code, failed->feedback)
                                   : prompt.messages,
                               true});
      continue;
    }
    const Prompt& prompt = next_prompt();
    prompt_groups.push_back({&prompt, prompt.messages, false});
  }
  return prompt_groups;
}

std::vector<PromptGroup> PromptQueue::refill(size_t count) {
  std::vector<PromptGroup> prompt_groups;
  while (prompt_groups.size() < count) {
    const Prompt& prompt = next_prompt();
    prompt_groups.push_back({&prompt, prompt.messages, false});
  }
  return prompt_groups;
}

const Prompt& PromptQueue::next_prompt() {
  if (position_.next == static_cast<int64_t>(prompts_.size())) position_ = {position_.epoch + 1, 0};
  const auto order = train::epoch_order(prompts_.size(), options_.seed, position_.epoch);
  MC_CHECK(order.size() == prompts_.size() && static_cast<size_t>(position_.next) < order.size());
  return prompts_[order[static_cast<size_t>(position_.next++)]];
}

RetryCounts PromptQueue::remember(int64_t step, std::span<const Episode> episodes) {
  RetryCounts counts;
  std::vector<rl::FailedCandidate> failures;
  for (const std::span<const Episode> group : groups_of(episodes)) {
    ++counts.num_groups;
    std::vector<std::vector<std::optional<double>>> scores;
    for (const Episode& episode : group) scores.push_back(episode.scores());
    const bool passed = std::ranges::any_of(group, &Episode::passed);
    counts.num_replays += group[0].is_replay ? 1 : 0;
    // A fresh prompt may also have solved a task of the buffer.
    if (passed) retries_.solved(group[0].task);
    counts.num_solved += group[0].is_replay && passed ? 1 : 0;
    if (!rl::is_all_failed(scores)) continue;
    ++counts.num_all_failed;
    if (auto failure = failure_of(group)) failures.push_back(std::move(*failure));
  }
  retries_.insert(std::move(failures));
  counts.buffer_size = retries_.size();
  counts.age_mean = retries_.age_mean(static_cast<uint64_t>(step));
  return counts;
}

// The failed answer of a group to replay later, chosen among those whose replay leaves room for an
// answer.
std::optional<rl::FailedCandidate> PromptQueue::failure_of(std::span<const Episode> group) const {
  const auto prompt = by_id_.find(group[0].task);
  if (prompt == by_id_.end()) return std::nullopt;
  std::vector<rl::FailedCandidate> candidates;
  std::set<std::string> seen;
  for (const Episode& episode : group) {
    for (const Turn& turn : episode.turns) {
      const Judgement& judgement = turn.judgement;
      if (!judgement.s || !judgement.stage || !seen.insert(turn.answer).second) continue;
      std::string code = rl::code_of(turn.answer);
      if (!options_.leaves_room(replay_messages(*prompt->second, code, judgement.feedback))) {
        continue;
      }
      candidates.push_back({.task = episode.task,
                            .prompt = episode.task,
                            .code = std::move(code),
                            .outcome = judgement.outcome,
                            .stage = *judgement.stage,
                            .feedback = judgement.feedback,
                            .s = *judgement.s,
                            .q = judgement.q,
                            .step = static_cast<uint64_t>(episode.step),
                            .group = static_cast<uint64_t>(episode.group)});
    }
  }
  if (candidates.empty()) return std::nullopt;
  return candidates[rl::choose_failure(candidates)];
}

}  // namespace mc::loop
