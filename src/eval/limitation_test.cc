// SPDX-License-Identifier: Apache-2.0
#include "eval/limitation.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace mc::eval {
namespace {

using execute::JudgePlan;
using execute::Tried;
using task::Crashed;
using task::Outcome;
using task::TimedOut;
using task::Wrong;

task::Trial trial(bool passed) {
  task::Trial trial;
  trial.passed = passed;
  return trial;
}

JudgePlan plan_at(const char* label) {
  JudgePlan plan;
  plan.shapes.push_back({label, {}, {}});
  return plan;
}

const std::set<int64_t> kSizes = {4096};

Crashed raised(std::string stage, std::vector<task::KernelFinding> findings = {},
               std::string message = "expected 4096 rows", std::string line = "ext.f(x)") {
  return {std::move(stage),
          task::Exception{"RuntimeError", std::move(message), {"candidate", 3, 1, line}, {}},
          0,
          0,
          std::move(findings),
          {}};
}

std::string first_shape_of(const std::optional<DeviceLimitation>& limitation) {
  return limitation ? limitation->shapes.front() : "";
}

TEST(DeviceLimitation, IsFoundForFailuresThatTheDeviceMayCause) {
  const Wrong wrong_throughout{0, false, {trial(false), trial(false)}};
  const Wrong right_at_times{0.5, false, {trial(true), trial(false)}};
  const struct {
    const char* main;
    Outcome outcome;
    const char* shape;
  } kTable[] = {
      {"reduced", wrong_throughout, "native"},
      {"native", wrong_throughout, ""},
      {"reduced", right_at_times, ""},
      {"reduced", raised("forward"), "native"},
      {"reduced", raised("init"), "native"},
      {"reduced", raised("load"), ""},
      {"reduced", Crashed{"forward", {}, 11, 0, {}, {}}, "native"},
      {"native", TimedOut{"forward", 30, {}}, "1/512"},
      {"reduced", TimedOut{"forward", 30, {}}, "1/512"},
      {"reduced", TimedOut{"load", 60, {}}, ""},
      {"reduced", task::OutOfMemory{"forward", 1}, ""},
      {"reduced", task::Illegal{"run", {}}, ""},
      {"reduced", task::Passed{}, ""},
  };
  for (const auto& row : kTable) {
    EXPECT_EQ(first_shape_of(limitation_for(row.outcome, plan_at(row.main), kSizes)), row.shape)
        << row.main << ' ' << task::outcome_name(row.outcome);
  }
}

TEST(DeviceLimitation, IsNoneForACandidateThatNamesNoSizeOrOwesGeneralKernels) {
  JudgePlan plan = plan_at("reduced");
  EXPECT_FALSE(limitation_for(raised("forward"), plan, {}));
  plan.needs_general = true;
  EXPECT_FALSE(limitation_for(raised("forward"), plan, kSizes));
  EXPECT_TRUE(limitation_for(TimedOut{"forward", 30, {}}, plan, {}));
}

TEST(DeviceLimitation, ForSizesNeedsATrialThatPassed) {
  const DeviceLimitation refuses = *limitation_for(raised("forward"), plan_at("reduced"), kSizes);
  EXPECT_TRUE(is_unsupported(refuses, std::vector<Tried>{{task::Passed{}}}, 60));
  EXPECT_FALSE(is_unsupported(refuses, {}, 60));  // The task cannot be judged there.
  for (const Outcome& outcome :
       {Outcome(Wrong{}), Outcome(raised("forward")), Outcome(TimedOut{"forward", 60, {}}),
        Outcome(task::OutOfMemory{"forward", 1}), Outcome(task::Illegal{})}) {
    EXPECT_FALSE(is_unsupported(refuses, std::vector<Tried>{{outcome}}, 60))
        << task::outcome_name(outcome);
  }
}

TEST(DeviceLimitation, ForSlownessNeedsKernelTimesThatExplainIt) {
  const DeviceLimitation slow = *limitation_for(TimedOut{"forward", 30, {}}, plan_at("native"), {});
  const auto passed = [](double work_s) { return Tried{task::Passed{}, work_s}; };
  const Tried late{TimedOut{"forward", 30, {}}};
  const struct {
    std::vector<Tried> tried;
    bool is_unsupported;
  } kTable[] = {
      {{passed(0.06), passed(0.5), passed(4)}, true},
      {{passed(0.01), passed(0.1), passed(0.6)}, true},  // Its time grows with the square.
      {{passed(0.5), passed(5), late}, true},
      {{passed(4), late}, true},
      // The candidate hangs only at the main sizes.
      {{passed(0.001), passed(0.001), passed(0.002)}, false},
      {{passed(0.001), passed(0.002), late}, false},  // The candidate hangs at all but small sizes.
      {{passed(0.001), late}, false},                 // It hangs where they are not tiny.
      {{late}, false},
      {{}, false},
      {{passed(0.5), passed(5), Tried{Wrong{}}}, false},
      {{Tried{raised("forward")}}, false},
  };
  for (const auto& row : kTable) {
    EXPECT_EQ(is_unsupported(slow, row.tried, 30), row.is_unsupported) << &row - kTable;
  }
}

}  // namespace
}  // namespace mc::eval
