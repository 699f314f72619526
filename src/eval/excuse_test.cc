// SPDX-License-Identifier: Apache-2.0
#include "eval/excuse.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace mc::eval {
namespace {

using execute::JudgePlan;
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

std::string shape_of(const std::optional<Excuse>& excuse) { return excuse ? excuse->shape : ""; }

TEST(Excuse, FitsWhatTheEmulatorMayBeTheReasonOf) {
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
      {"native", TimedOut{"forward", 30, {}}, "tiny"},
      {"reduced", TimedOut{"forward", 30, {}}, "tiny"},
      {"reduced", TimedOut{"load", 60, {}}, ""},
      {"reduced", task::OutOfMemory{"forward", 1}, ""},
      {"reduced", task::Illegal{"run", {}}, ""},
      {"reduced", task::Passed{}, ""},
  };
  for (const auto& row : kTable) {
    EXPECT_EQ(shape_of(excuse_for(row.outcome, plan_at(row.main), kSizes)), row.shape)
        << row.main << ' ' << task::outcome_name(row.outcome);
  }
}

TEST(Excuse, IsNoneForACandidateThatNamesNoSizeOrOwesGeneralKernels) {
  JudgePlan plan = plan_at("reduced");
  EXPECT_EQ(shape_of(excuse_for(raised("forward"), plan, {})), "");
  plan.needs_general = true;
  EXPECT_EQ(shape_of(excuse_for(raised("forward"), plan, kSizes)), "");
  EXPECT_EQ(shape_of(excuse_for(TimedOut{"forward", 30, {}}, plan, {})), "tiny");
}

TEST(Excuse, StandsUntriedForAnOwnCheckAlone) {
  const JudgePlan plan = plan_at("reduced");
  const Excuse refuses = *excuse_for(raised("forward"), plan, kSizes);
  const Excuse faults = *excuse_for(raised("forward", {{}}), plan, kSizes);
  const Excuse dies = *excuse_for(Crashed{"forward", {}, 11, 0, {}, {}}, plan, kSizes);
  const Excuse wrong = *excuse_for(Wrong{0, false, {trial(false)}}, plan, kSizes);
  for (const auto& tried : std::vector<std::optional<Outcome>>{
           std::nullopt, TimedOut{"forward", 60, {}}, task::OutOfMemory{"forward", 1}}) {
    EXPECT_TRUE(is_excused(refuses, tried));
    EXPECT_FALSE(is_excused(faults, tried));
    EXPECT_FALSE(is_excused(dies, tried));
    EXPECT_FALSE(is_excused(wrong, tried));
  }
}

TEST(Excuse, StandsUntriedOnlyWhereTheCandidateItselfRefusedTheSize) {
  const struct {
    const char *message, *line;
    bool stands;
  } kTable[] = {
      {"expected 4096 rows", "ext.f(x)", true},
      {"expected 40960 rows", "ext.f(x)", false},
      {"not implemented", "x = self.conv(x)", false},
      {"too small", "    raise ValueError('too small')", true},
      {"", "assert x.shape[0] == N", true},
      {"14096", "ext.f(x)", false},
  };
  for (const auto& row : kTable) {
    const auto excuse =
        excuse_for(raised("forward", {}, row.message, row.line), plan_at("reduced"), kSizes);
    ASSERT_TRUE(excuse);
    EXPECT_EQ(is_excused(*excuse, std::nullopt), row.stands) << row.message << row.line;
  }
}

TEST(Excuse, StandsWhereTheCandidateIsRightAndFallsWhereItFails) {
  const JudgePlan plan = plan_at("reduced");
  const Excuse refuses = *excuse_for(raised("forward"), plan, kSizes);
  const Excuse slow = *excuse_for(TimedOut{"forward", 30, {}}, plan, kSizes);
  for (const Excuse& excuse : {refuses, slow}) {
    EXPECT_TRUE(is_excused(excuse, task::Passed{}));
    EXPECT_FALSE(is_excused(excuse, Wrong{}));
    EXPECT_FALSE(is_excused(excuse, raised("forward")));
    EXPECT_FALSE(is_excused(excuse, task::Illegal{}));
  }
  EXPECT_FALSE(is_excused(slow, std::nullopt));
  EXPECT_FALSE(is_excused(slow, TimedOut{"forward", 30, {}}));
}

}  // namespace
}  // namespace mc::eval
