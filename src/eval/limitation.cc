// SPDX-License-Identifier: Apache-2.0
#include "eval/limitation.h"

#include <algorithm>

namespace mc::eval {
namespace {

constexpr double kNativeForwardSeconds = 60;

// The cost of one forward pass in relation to that at the main sizes
// (python/harness/judge/shapes.py).
constexpr const char* kSmaller[] = {"1/512", "1/64", "1/8"};
// The cost grows eightfold from one size to the next, and the time of a kernel grows at most with
// its square.
constexpr double kGrowthMax = 64;

constexpr const char* kAtNamedSizes[] = {"native", "named"};

bool fails_throughout(const std::vector<task::Trial>& trials) {
  return std::ranges::none_of(trials, &task::Trial::passed);
}

bool is_late(const execute::Tried& tried) {
  return std::holds_alternative<task::TimedOut>(tried.outcome);
}

bool has_passed(const execute::Tried& tried) {
  return std::holds_alternative<task::Passed>(tried.outcome);
}

}  // namespace

std::optional<DeviceLimitation> limitation_for(const task::Outcome& outcome,
                                               const execute::JudgePlan& plan,
                                               const std::set<int64_t>& sizes) {
  if (const auto* late = std::get_if<task::TimedOut>(&outcome); late && late->stage == "forward") {
    return DeviceLimitation{
        .shapes = kSmaller,
        .why = {"emulator.too_slow",
                "right at smaller sizes, and too slow here at those that it is judged at",
                {}},
        .is_slow = true};
  }
  const bool is_reduced = !plan.shapes.empty() && plan.shapes.front().label == "reduced";
  if (!is_reduced || plan.needs_general || sizes.empty()) return std::nullopt;
  const auto* wrong = std::get_if<task::Wrong>(&outcome);
  const auto* crashed = std::get_if<task::Crashed>(&outcome);
  const bool fails = wrong ? fails_throughout(wrong->trials)
                           : crashed && fails_throughout(crashed->trials) &&
                                 (crashed->stage == "init" || crashed->stage == "forward");
  if (!fails) return std::nullopt;
  return DeviceLimitation{.shapes = kAtNamedSizes,
                          .forward_s = kNativeForwardSeconds,
                          .why = {"task.fixed_size",
                                  "made for the task's own sizes alone, at which it is right; "
                                  "the CPU backend judges it at smaller ones",
                                  {}}};
}

bool is_unsupported(const DeviceLimitation& limitation, std::span<const execute::Tried> tried,
                    double limit_s) {
  if (!limitation.is_slow) return !tried.empty() && has_passed(tried.back());
  const auto late = std::ranges::find_if(tried, is_late);
  const auto finished = tried.first(static_cast<size_t>(late - tried.begin()));
  return !finished.empty() && std::ranges::all_of(finished, has_passed) &&
         finished.back().work_s * kGrowthMax >= limit_s;
}

}  // namespace mc::eval
