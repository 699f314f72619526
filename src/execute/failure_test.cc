// SPDX-License-Identifier: Apache-2.0
#include "execute/failure.h"

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/demangle.h"

namespace mc::execute {
namespace {

task::Outcome outcome_of(const ErrorReply& refusal) {
  const StageLimits limits;
  return Failure{limits, "load", limits.load_s, {}}(refusal);
}

TEST(Failure, AnExceptionIsTheCandidatesInTheStageWhereItHappened) {
  const task::Outcome outcome = outcome_of({"exception", "init", {"KeyError", "'x'", {}, {}}});
  const auto* crashed = std::get_if<task::Crashed>(&outcome);
  ASSERT_NE(crashed, nullptr);
  EXPECT_EQ(crashed->stage, "init");
  EXPECT_EQ(crashed->exception->type, "KeyError");
}

TEST(Failure, AnUndefinedSymbolIsACompileFailure) {
  const task::SourceLocation location{"candidate", 31, 0, "ext = load_inline("};
  const task::Outcome outcome =
      outcome_of({"link", "load", {"Refusal", "_Z7row_sumN2at6TensorE", location, {location}}});
  const auto* failed = std::get_if<task::CompileFailed>(&outcome);
  ASSERT_NE(failed, nullptr);
  const task::Diagnostic expected{"error", "undefined reference to row_sum: nothing defines it",
                                  location};
  EXPECT_EQ(failed->diagnostics, std::vector<task::Diagnostic>{expected});
}

TEST(Failure, TheUseOfAForbiddenNameIsIllegal) {
  const task::SourceLocation location{"candidate", 9, 0, "return a @ b"};
  const task::Outcome outcome =
      outcome_of({"operator", "", {"Refusal", "aten::mm is not available", location, {location}}});
  const auto* illegal = std::get_if<task::Illegal>(&outcome);
  ASSERT_NE(illegal, nullptr);
  EXPECT_EQ(illegal->when, "run");
  const task::RuleFinding expected{"run.aten", "aten::mm is not available", location};
  EXPECT_EQ(illegal->findings, std::vector<task::RuleFinding>{expected});
}

TEST(Failure, AKernelThatExceedsItsStepLimitTimesOut) {
  task::KernelFinding endless;
  endless.kind = "step_limit";
  const ErrorReply refusal{"exception", "", {"CudaError", "launch timed out", {}, {}}};
  const task::Outcome outcome = Failure{StageLimits(), "forward", 1, {endless}}(refusal);
  const auto* late = std::get_if<task::TimedOut>(&outcome);
  ASSERT_NE(late, nullptr);
  EXPECT_EQ(late->findings, std::vector<task::KernelFinding>{endless});
}

TEST(Failure, AFeatureThatTheDeviceLacksIsUnsupported) {
  const StageLimits limits;
  task::KernelFinding lack;
  lack.kind = "unsupported";
  lack.detail = "the instruction wgmma";
  const auto outcome_with = [&](std::vector<task::KernelFinding> findings) {
    return Failure{limits, "forward", 1, std::move(findings)}(ProcessEnd{SIGABRT, 0});
  };
  EXPECT_TRUE(std::holds_alternative<task::Crashed>(outcome_with({})));
  const task::Outcome outcome = outcome_with({lack});
  const auto* unsupported = std::get_if<task::Unsupported>(&outcome);
  ASSERT_NE(unsupported, nullptr);
  EXPECT_EQ(unsupported->constructs.at(0).message, lack.detail);
}

TEST(Failure, ANameWithoutAnEndIsCut) {
  const task::Outcome outcome =
      outcome_of({"link", "load", {"Refusal", std::string(1 << 20, 'x'), {}, {}}});
  const auto& failed = std::get<task::CompileFailed>(outcome);
  EXPECT_LT(failed.diagnostics.at(0).message.size(), kDemangledBytesMax + 100);
}

}  // namespace
}  // namespace mc::execute
