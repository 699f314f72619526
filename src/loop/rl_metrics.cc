// SPDX-License-Identifier: Apache-2.0
#include "loop/rl_metrics.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "core/check.h"
#include "rl/score.h"
#include "task/verdict.h"

namespace mc::loop {
namespace {

// Names of metrics such as "outcome/pass": texts that live as long as the program.
const std::map<std::string, std::string>& outcome_tags() {
  static const std::map<std::string, std::string> kTags = [] {
    std::map<std::string, std::string> tags;
    for (const std::string& name : task::outcome_names()) tags[name] = "outcome/" + name;
    return tags;
  }();
  return kTags;
}

double share(size_t part, size_t all) {
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

// The share of first turns that are unsupported although no answer to their prompt passes.
double unsupported_gains(std::span<const Episode> episodes) {
  std::set<int64_t> passed;
  for (const Episode& episode : episodes) {
    if (episode.passed()) passed.insert(episode.group);
  }
  const auto gains = std::ranges::count_if(episodes, [&](const Episode& episode) {
    return episode.turns.front().judgement.outcome == "unsupported" &&
           !passed.contains(episode.group);
  });
  return share(static_cast<size_t>(gains), episodes.size());
}

double reward_mean(std::span<const Episode> episodes, const UpdateOptions& options) {
  double sum = 0;
  size_t count = 0;
  for (const Episode& episode : episodes) {
    const std::optional<double> reward = reward_of(episode, options);
    sum += reward.value_or(0);
    count += reward ? 1 : 0;
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

double overlong_mean(std::span<const Episode> episodes, const rl::OverlongOptions& options) {
  double sum = 0;
  for (const Episode& episode : episodes) {
    sum += rl::overlong_penalty(episode.turns.front().num_tokens, options);
  }
  return episodes.empty() ? 0 : sum / static_cast<double>(episodes.size());
}

}  // namespace

void add_episodes(std::span<const Episode> episodes, const UpdateOptions& options,
                  Scalars& scalars) {
  size_t num_scored = 0, num_first = 0, num_best = 0, num_cut = 0, num_turns = 0, num_tokens = 0;
  double s_first = 0;
  std::map<std::string, size_t> outcomes;
  for (const Episode& episode : episodes) {
    const Turn& first = episode.turns.front();
    ++outcomes[first.judgement.outcome];
    num_tokens += episode.tokens.size();
    num_cut += first.is_stopped ? 0 : 1;
    if (!first.judgement.s) continue;
    ++num_scored;
    s_first += *first.judgement.s;
    num_first += *first.judgement.s >= rl::kScorePassed ? 1 : 0;
    if (!episode.passed()) continue;
    ++num_best;
    num_turns += episode.turns.size();  // An episode ends at its first pass.
  }
  scalars.emplace_back("reward", reward_mean(episodes, options));
  scalars.emplace_back("s_first", num_scored == 0 ? 0 : s_first / static_cast<double>(num_scored));
  scalars.emplace_back("accuracy_first", share(num_first, num_scored));
  scalars.emplace_back("accuracy_best", share(num_best, num_scored));
  if (num_best > 0) scalars.emplace_back("turns_to_success", share(num_turns, num_best));
  scalars.emplace_back("answer_tokens", share(num_tokens, episodes.size()));
  scalars.emplace_back("cut_share", share(num_cut, episodes.size()));
  if (options.overlong.margin > 0) {
    scalars.emplace_back("overlong", overlong_mean(episodes, options.overlong));
  }
  scalars.emplace_back("unsupported_gains", unsupported_gains(episodes));
  for (const auto& [name, tag] : outcome_tags()) {
    if (outcomes[name] > 0) scalars.emplace_back(tag, share(outcomes[name], episodes.size()));
  }
}

void add_update(const UpdateResult& update, size_t num_no_spread, Scalars& scalars) {
  const rl::StepPlan& plan = update.plan;
  MC_CHECK(update.drifts.size() == plan.advantage.size());
  double drift = 0, drift_signed = 0, drift_kept = 0;
  size_t num_kept = 0;
  for (size_t i = 0; i < update.drifts.size(); ++i) {
    drift += update.drifts[i].mean_abs;
    drift_signed += update.drifts[i].mean_signed;
    if (!plan.advantage[i]) continue;
    drift_kept += update.drifts[i].mean_abs;
    ++num_kept;
  }
  const auto count = static_cast<double>(std::max<size_t>(1, update.drifts.size()));
  const auto groups = [](size_t n) { return static_cast<double>(n); };
  scalars.emplace_back("reward_std", plan.std_mean);
  scalars.emplace_back("loss", update.loss);
  scalars.emplace_back("grad_norm", update.grad_norm);
  scalars.emplace_back("entropy", update.metrics.mean(update.metrics.sum_entropy));
  scalars.emplace_back("kl", update.metrics.mean(update.metrics.sum_k3));
  scalars.emplace_back("clip_share", update.metrics.clip_share());
  scalars.emplace_back("updates", static_cast<double>(update.num_updates));
  scalars.emplace_back("kl_old", update.kl_old);
  scalars.emplace_back("drift", drift / count);
  scalars.emplace_back("drift_signed", drift_signed / count);
  if (num_kept > 0) scalars.emplace_back("drift_kept", drift_kept / static_cast<double>(num_kept));
  scalars.emplace_back("rejected", groups(plan.num_rejected));
  scalars.emplace_back("unscored", groups(plan.num_unscored));
  scalars.emplace_back("groups_no_spread", groups(plan.num_groups_no_spread + num_no_spread));
  scalars.emplace_back("groups_dropped", groups(plan.num_groups_dropped));
  if (plan.frac_positive_adv_on_failed_first_turn) {
    scalars.emplace_back("frac_positive_adv_on_failed_first_turn",
                         *plan.frac_positive_adv_on_failed_first_turn);
  }
}

void add_retries(const RetryCounts& counts, Scalars& scalars) {
  scalars.emplace_back("all_failed_share", share(counts.num_all_failed, counts.num_groups));
  scalars.emplace_back("bdr/size", static_cast<double>(counts.buffer_size));
  scalars.emplace_back("bdr/age", counts.age_mean);
  scalars.emplace_back("bdr/replays", static_cast<double>(counts.num_replays));
  scalars.emplace_back("bdr/solved", static_cast<double>(counts.num_solved));
  if (counts.num_replays > 0) {
    scalars.emplace_back("bdr/solve_rate", share(counts.num_solved, counts.num_replays));
  }
}

void add_eval(std::span<const Episode> episodes, Scalars& scalars) {
  size_t num_scored = 0, num_passed = 0, num_cut = 0;
  for (const Episode& episode : episodes) {
    num_scored += episode.turns.front().judgement.s ? 1 : 0;
    num_passed += episode.passed() ? 1 : 0;
    num_cut += episode.turns.front().is_stopped ? 0 : 1;
  }
  scalars.emplace_back("eval/accuracy", share(num_passed, num_scored));
  scalars.emplace_back("eval/scored", static_cast<double>(num_scored));
  scalars.emplace_back("eval/cut_share", share(num_cut, episodes.size()));
}

double value_of(const Scalars& scalars, std::string_view name) {
  for (const auto& [tag, value] : scalars) {
    if (tag == name) return value;
  }
  return 0;
}

}  // namespace mc::loop
