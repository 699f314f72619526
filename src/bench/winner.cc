// SPDX-License-Identifier: Apache-2.0
#include "bench/winner.h"

#include <algorithm>
#include <tuple>
#include <variant>

namespace mc::bench {
namespace {

bool is_correct(const task::Verdict& verdict) {
  return std::holds_alternative<task::Passed>(verdict.outcome) &&
         !task::is_earned_by_any_constant(verdict);
}

// The largest tuple is the best: timed before untimed, then speed, generality, and the earlier
// turn.
auto rank_of(const store::Judgement& one) {
  const std::optional<double> speedup = speedup_of(one.verdict);
  return std::tuple(speedup.has_value(), speedup.value_or(0), is_general(one.verdict),
                    -one.key.turn, -one.key.sample);
}

}  // namespace

std::optional<double> speedup_of(const task::Verdict& verdict) {
  const auto* passed = std::get_if<task::Passed>(&verdict.outcome);
  if (passed == nullptr || !passed->performance) return std::nullopt;
  return passed->performance->speedup_eager.low;
}

bool is_general(const task::Verdict& verdict) {
  const auto* passed = std::get_if<task::Passed>(&verdict.outcome);
  if (passed == nullptr || passed->generality < 1) return false;
  return std::ranges::any_of(passed->trials, [](const task::Trial& trial) {
    return trial.shape == "ragged" || trial.shape == "small";
  });
}

const store::Judgement* winner_of(std::span<const store::Judgement> judgements) {
  const store::Judgement* best = nullptr;
  for (const store::Judgement& one : judgements) {
    const bool is_better = best == nullptr || rank_of(one) > rank_of(*best);
    if (is_correct(one.verdict) && is_better) best = &one;
  }
  return best;
}

}  // namespace mc::bench
