// SPDX-License-Identifier: Apache-2.0
#include "cli/task_grades.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/commands.h"

namespace mc::cli {
namespace {

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

}  // namespace

GradedTask graded(const task::Task& task, eval::Pipeline::Hygiene found) {
  GradedTask checked{task.id, std::move(found.grade.grade), std::move(found.grade.reasons),
                     std::move(found.shape)};
  if (found.as_initialised.empty() || checked.grade == kTrivial) return checked;
  checked.grade = "weak";
  checked.reasons.push_back(
      fmt::format("with weights as the task makes them a trial is passed by {}",
                  fmt::join(found.as_initialised, ", ")));
  return checked;
}

std::string json_line(const GradedTask& checked) {
  const nlohmann::ordered_json json = {{"task", checked.task},
                                       {"grade", checked.grade},
                                       {"reasons", checked.reasons},
                                       {"shape", checked.shape}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string grades_table(const std::vector<GradedTask>& all) {
  size_t width = 4;
  for (const GradedTask& checked : all) width = std::max(width, checked.task.size());
  std::string out = fmt::format("{:{}}  {:11}  {:7}  why\n", "task", width, "grade", "sizes");
  for (const GradedTask& checked : all) {
    std::string line = fmt::format("{:{}}  {:11}  {:7}  {}", checked.task, width, checked.grade,
                                   checked.shape, fmt::join(checked.reasons, "; "));
    line = one_line(std::move(line));
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string grades_summary(const std::vector<GradedTask>& all) {
  std::vector<std::string> parts;
  for (const std::string grade : {"good", "weak", kTrivial, kUnsupported, kInvalid, kFailed}) {
    const auto num = std::ranges::count(all, grade, &GradedTask::grade);
    if (num > 0) parts.push_back(fmt::format("{} {}", num, grade));
  }
  return fmt::format("{} task{}: {}\n", all.size(), all.size() == 1 ? "" : "s",
                     fmt::join(parts, ", "));
}

int exit_code_of(const std::vector<GradedTask>& all) {
  const auto has = [&](const char* grade) {
    return std::ranges::find(all, grade, &GradedTask::grade) != all.end();
  };
  if (has(kTrivial) || has(kUnsupported) || has(kInvalid)) return kExitFound;
  return has(kFailed) ? kExitMachine : kExitDone;
}

}  // namespace mc::cli
