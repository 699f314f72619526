// SPDX-License-Identifier: Apache-2.0
#include "eval/excuse.h"

#include <algorithm>

namespace mc::eval {
namespace {

constexpr double kNativeForwardSeconds = 60;

// Whether no trial at the reduced sizes was right.
bool fails_throughout(const std::vector<task::Trial>& trials) {
  return std::ranges::none_of(trials, &task::Trial::passed);
}

}  // namespace

std::optional<Excuse> excuse_for(const task::Outcome& outcome, const execute::JudgePlan& plan,
                                 bool names_sizes) {
  if (const auto* late = std::get_if<task::TimedOut>(&outcome); late && late->stage == "forward") {
    return Excuse{"tiny",
                  0,
                  {"emulator.too_slow",
                   "right at much smaller sizes, and too slow here at those that it is judged at",
                   {}}};
  }
  const bool is_reduced = !plan.shapes.empty() && plan.shapes.front().label == "reduced";
  if (!is_reduced || plan.needs_general || !names_sizes) return std::nullopt;
  const auto* wrong = std::get_if<task::Wrong>(&outcome);
  const auto* crashed = std::get_if<task::Crashed>(&outcome);
  const bool fails = wrong ? fails_throughout(wrong->trials)
                           : crashed && fails_throughout(crashed->trials) &&
                                 (crashed->stage == "init" || crashed->stage == "forward");
  if (!fails) return std::nullopt;
  const bool refuses = crashed && crashed->exception && crashed->findings.empty();
  return Excuse{"native",
                kNativeForwardSeconds,
                {"task.fixed_size",
                 "made for the task's own sizes alone, at which the CPU backend cannot judge it",
                 {}},
                refuses};
}

bool is_excused(const Excuse& excuse, const std::optional<task::Outcome>& tried) {
  if (!tried || std::holds_alternative<task::TimedOut>(*tried) ||
      std::holds_alternative<task::OutOfMemory>(*tried)) {
    return excuse.holds_untried;
  }
  return std::holds_alternative<task::Passed>(*tried);
}

}  // namespace mc::eval
