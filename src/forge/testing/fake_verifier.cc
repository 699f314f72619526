// SPDX-License-Identifier: Apache-2.0
#include "forge/testing/fake_verifier.h"

#include <set>
#include <string>

#include "core/hash.h"

namespace mc::forge {
namespace {

// True for one in `count` texts.
bool is_one_in(uint64_t count, const std::string& text) {
  return derive_seed(7, text) % count == 0;
}

task::Wrong wrong_answer(const std::string& module) {
  task::OutputCheck check{.path = "output",
                          .problem = "value",
                          .detail = {},
                          .num_elements = 640,
                          .num_wrong = 3 + static_cast<int64_t>(module.size() % 5),
                          .error_max = 0.5,
                          .error_tolerance = 0.25,
                          .first_mismatches = {{{0, 1}, "1.5", "1"}},
                          .histogram = {{"1-10", 3}},
                          .diagnosis = {}};
  return {.q = 0.5, .trials = {{.index = 0, .shape = "small", .checks = {check}}}};
}

task::Crashed crash(const std::string& module) {
  const task::KernelFinding access{.kind = "out_of_bounds_read",
                                   .kernel = "k(float const*)",
                                   .block = {1, 0, 0},
                                   .thread = {31, 0, 0},
                                   .detail = "4 bytes behind the end of x",
                                   .location = {"cuda_sources[0]", 7, 3, "  y[i] = x[i];"}};
  const task::KernelFinding refused{
      .kind = "launch_error", .kernel = "k(float const*)", .detail = "2048 threads in a block"};
  task::Crashed crashed{.stage = "forward", .findings = {refused}};
  if (is_one_in(2, module + " access")) {
    crashed.findings = {access};
  } else {
    crashed.exception = {"RuntimeError", "invalid configuration", {"candidate", 20, 1, "  k(x)"}};
  }
  return crashed;
}

// The outcome of a kernel of the forge; a bug in it is found more often than not.
task::Outcome outcome_of(const std::string& module, bool has_bug) {
  if (!has_bug) {
    if (is_one_in(12, module)) {
      return task::CompileFailed{{{"error", "expected a ';'", {"cuda_sources[0]", 5, 9, "x y"}}}};
    }
    if (is_one_in(30, module)) return wrong_answer(module);
    return task::Passed{};
  }
  if (is_one_in(8, module)) return task::Passed{};
  if (is_one_in(3, module)) return crash(module);
  return wrong_answer(module);
}

}  // namespace

Result<std::vector<TaskResult>> fake_results(const std::vector<TaskWork>& works) {
  std::vector<TaskResult> results;
  for (const TaskWork& work : works) {
    TaskResult& result = results.emplace_back();
    if (is_one_in(14, work.task.id)) {
      result.gate = {"the output is constant", "another reason"};
      continue;
    }
    for (const std::string& test : work.tests) result.tests.push_back(!is_one_in(5, test));
    std::set<std::string> seen;
    for (const Attempt& attempt : work.attempts) {
      // The solutions come first, and a bug has the name of the solution that it was put into.
      const bool has_bug = !seen.insert(attempt.candidate.id).second;
      result.outcomes.push_back(outcome_of(attempt.module, has_bug));
    }
    for (const Attempt& attempt : work.may_not_compile) {
      result.outcomes.push_back(task::CompileFailed{
          {{"error", "no such name", {"cuda_sources[0]", 9, 2, attempt.cuda.substr(0, 20)}}}});
    }
  }
  return results;
}

}  // namespace mc::forge
