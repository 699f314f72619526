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

Stage<Timed> play(Simulation& simulation, const RunOptions& options,
                  const StageLimits& stage_limits) {
  RunOptions timed = options;
  timed.clock = simulation.clock();
  ComparisonRun run(simulation.judge(), stage_limits, timed, nullptr);
  MC_TRY(auto early, run.warm_up(simulation.candidate(), simulation.baseline()), "test");
  if (early) return std::variant<Timed, task::Outcome>(std::move(*early));
  return run.run();
}

Timed timed(Simulation& simulation, const RunOptions& options) {
  auto played = play(simulation, options);
  if (!played) ADD_FAILURE() << played.error().message;
  if (!played) return {};
  if (auto* outcome = std::get_if<task::Outcome>(&*played)) {
    ADD_FAILURE() << "decided " << task::outcome_name(*outcome);
    return {};
  }
  return std::get<Timed>(std::move(*played));
}

task::Outcome decided(Simulation& simulation, const StageLimits& stage_limits) {
  const auto played = play(simulation, steady(), stage_limits);
  if (!played) ADD_FAILURE() << played.error().message;
  const auto* outcome = played ? std::get_if<task::Outcome>(&*played) : nullptr;
  return outcome == nullptr ? task::Outcome() : *outcome;
}

std::vector<Record> runs(const Simulation& simulation, std::string_view who) {
  return simulation.records(who, "run");
}

std::vector<int64_t> calls_of(const std::vector<Record>& records) {
  std::vector<int64_t> calls;
  for (const Record& record : records) calls.push_back(record.calls);
  return calls;
}

int64_t num_traced(const std::vector<Record>& records) {
  return std::ranges::count(records, true, &Record::traced);
}

int64_t num_enqueued(const std::vector<Record>& records) {
  return std::ranges::count(records, true, &Record::enqueued);
}

}  // namespace mc::timing
