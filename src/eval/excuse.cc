// SPDX-License-Identifier: Apache-2.0
#include "eval/excuse.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace mc::eval {
namespace {

constexpr double kNativeForwardSeconds = 60;

// Whether no trial at the reduced sizes was right.
bool fails_throughout(const std::vector<task::Trial>& trials) {
  return std::ranges::none_of(trials, &task::Trial::passed);
}

bool names_one(std::string_view text, const std::set<int64_t>& sizes) {
  return std::ranges::any_of(sizes, [&](int64_t size) {
    const std::string number = std::to_string(size);
    const auto is_digit_at = [&](size_t i) {
      return i < text.size() && text[i] >= '0' && text[i] <= '9';
    };
    for (size_t at = text.find(number); at != text.npos; at = text.find(number, at + 1)) {
      if (!is_digit_at(at - 1) && !is_digit_at(at + number.size())) return true;
    }
    return false;
  });
}

// Rather than an operator's or a kernel's.
bool is_own_check(const task::Exception& exception, const std::set<int64_t>& sizes) {
  const std::string_view line = exception.location.excerpt;
  const std::string_view statement =
      line.substr(std::min(line.find_first_not_of(" \t"), line.size()));
  return statement.starts_with("raise") || statement.starts_with("assert") ||
         names_one(exception.message, sizes);
}

}  // namespace

std::optional<Excuse> excuse_for(const task::Outcome& outcome, const execute::JudgePlan& plan,
                                 const std::set<int64_t>& sizes) {
  if (const auto* late = std::get_if<task::TimedOut>(&outcome); late && late->stage == "forward") {
    return Excuse{"tiny",
                  0,
                  {"emulator.too_slow",
                   "right at much smaller sizes, and too slow here at those that it is judged at",
                   {}}};
  }
  const bool is_reduced = !plan.shapes.empty() && plan.shapes.front().label == "reduced";
  if (!is_reduced || plan.needs_general || sizes.empty()) return std::nullopt;
  const auto* wrong = std::get_if<task::Wrong>(&outcome);
  const auto* crashed = std::get_if<task::Crashed>(&outcome);
  const bool fails = wrong ? fails_throughout(wrong->trials)
                           : crashed && fails_throughout(crashed->trials) &&
                                 (crashed->stage == "init" || crashed->stage == "forward");
  if (!fails) return std::nullopt;
  const bool refuses = crashed && crashed->exception && crashed->findings.empty() &&
                       is_own_check(*crashed->exception, sizes);
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
