// SPDX-License-Identifier: Apache-2.0
#include "timing/test_timed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace mc::timing {

RunOptions steady() {
  RunOptions options;
  options.batch = {.batch_us = kNoLimit, .calls_max = kCalls, .host_us = kNoLimit};
  options.pairs = kPairs;
  options.timed_us = 0;
  options.pairs_min = kPairs - 1;
  options.budget_s = kNoLimit;
  options.batches_traced = options.batches_late = 0;
  return options;
}

StageLimits limits() {
  StageLimits limits;
  limits.forward_s = 10;
  limits.queue_s = 0.4;
  return limits;
}

Stage<Timed> play(Rehearsal& rehearsal, const RunOptions& options,
                  const StageLimits& stage_limits) {
  RunOptions timed = options;
  timed.clock = rehearsal.clock();
  ComparisonRun run(rehearsal.judge(), stage_limits, timed, nullptr);
  MC_TRY(auto early, run.warm_up(rehearsal.candidate(), rehearsal.baseline()), "test");
  if (early) return std::variant<Timed, task::Outcome>(std::move(*early));
  return run.run();
}

Timed timed(Rehearsal& rehearsal, const RunOptions& options) {
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

int64_t num_enqueued(const std::vector<Scene>& scenes) {
  return std::ranges::count(scenes, true, &Scene::enqueued);
}

}  // namespace mc::timing
