// SPDX-License-Identifier: Apache-2.0
#include "timing/test_timed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace mc::timing {

TimingOptions steady() {
  TimingOptions options;
  options.burst = {.burst_us = kNoLimit, .calls_max = kCalls};
  options.charge.host_us_free = kNoLimit;
  options.charge.clock_slack_us = kNoLimit;
  options.charge.look_slack_us = kNoLimit;
  options.charge.look_slack_open_us = kNoLimit;
  options.pairs = kPairs;
  options.timed_us = 0;
  options.pairs_min = kPairs - 1;
  options.budget_s = kNoLimit;
  options.bursts_traced = 0;
  return options;
}

StageLimits limits() {
  StageLimits limits;
  limits.forward_s = 10;
  limits.queue_s = 0.4;
  return limits;
}

Rehearsal rehearse(const Scripts& scripts) { return std::move(Rehearsal::create(scripts)).value(); }

Stage<Timed> play(Rehearsal& rehearsal, const TimingOptions& options,
                  const StageLimits& stage_limits) {
  Timing timing(rehearsal.judge(), stage_limits, options, nullptr);
  MC_TRY(auto decided, timing.warm_up(rehearsal.candidate(), rehearsal.baseline()), "test");
  if (decided) return std::variant<Timed, task::Outcome>(std::move(*decided));
  return timing.run();
}

Timed timed(Rehearsal& rehearsal, const TimingOptions& options) {
  auto played = play(rehearsal, options);
  if (!played) ADD_FAILURE() << played.error().message;
  if (!played) return {};
  if (auto* outcome = std::get_if<task::Outcome>(&*played)) {
    ADD_FAILURE() << "decided " << task::outcome_name(*outcome);
    return {};
  }
  return std::get<Timed>(std::move(*played));
}

task::Outcome decided(Rehearsal& rehearsal, const StageLimits& stage_limits) {
  const auto played = play(rehearsal, steady(), stage_limits);
  if (!played) ADD_FAILURE() << played.error().message;
  const auto* outcome = played ? std::get_if<task::Outcome>(&*played) : nullptr;
  return outcome == nullptr ? task::Outcome() : *outcome;
}

std::vector<Scene> runs(const Rehearsal& rehearsal, std::string_view who) {
  return rehearsal.scenes(who, "run");
}

std::vector<int64_t> calls_of(const std::vector<Scene>& scenes) {
  std::vector<int64_t> calls;
  for (const Scene& scene : scenes) calls.push_back(scene.calls);
  return calls;
}

int64_t num_traced(const std::vector<Scene>& scenes) {
  return std::ranges::count(scenes, true, &Scene::traced);
}

int64_t num_gated(const std::vector<Scene>& scenes) {
  return std::ranges::count(scenes, true, &Scene::gated);
}

}  // namespace mc::timing
