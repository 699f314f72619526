// SPDX-License-Identifier: Apache-2.0
#include "eval/strict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "eval/fakes/evaluation_fixture.h"

namespace mc::eval {
namespace {

using execute::Role;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr uint64_t kSeed = 77;

class StrictTest : public testing::Test {
 protected:
  StrictTest() { fixture_.compute_device.reset(); }  // No sanitizer without a device.
  Result<std::optional<task::Outcome>> run() {
    const execute::Program program{
        "class ModelNew: pass", {}, [](std::string_view, uint64_t, std::string_view) {
          return task::SourceLocation{};
        }};
    const std::vector<std::string> kernels{"_Z1kPf"};
    const std::string task = "class Model: pass";
    const EvaluationContext context = fixture_.context();
    const StrictSubject subject{
        task, program, kernels, kSeed, {.correctness = {.trials = 3}}, Schedule::Use::kShared};
    Strict strict(context, subject);
    auto decided = strict.run(passed_);
    audits_ = strict.audits();
    // The device is free again, whatever the outcome is.
    fixture_.device.turn(Schedule::Use::kExclusive);
    return decided;
  }
  template <typename Outcome>
  Outcome decided() {
    const auto ran = run();
    if (!ran) ADD_FAILURE() << ran.error().message;
    const auto* found = ran && *ran ? std::get_if<Outcome>(&**ran) : nullptr;
    if (found == nullptr) ADD_FAILURE() << "something else was decided";
    return found == nullptr ? Outcome() : *found;
  }
  // Makes the judge with this number, from 1, find the candidate wrong.
  void let_judge_find_wrong(int number) {
    fixture_.judges().on<worker::JudgeCheckRequest>([this, number](const auto&, const Fd&) {
      return worker::JudgeCheckResponse{.passed = ++num_checks_ != number};
    });
  }

  EvaluationFixture fixture_;
  task::Passed passed_{{{}}, std::nullopt, 1};
  std::vector<task::Audit> audits_;
  int num_checks_ = 0;
};

TEST_F(StrictTest, IsCleanWhereTwoMoreJudgesFindAllRight) {
  const auto ran = run();
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_FALSE(ran->has_value());
  EXPECT_THAT(audits_, ElementsAre(task::Audit{"other_seeds", "clean", ""}));
  EXPECT_THAT(fixture_.spawned,
              ElementsAre(Role::kJudge, Role::kCandidate, Role::kJudge, Role::kCandidate));
}

TEST_F(StrictTest, GivesEachJudgeAndCandidateADifferentSeed) {
  std::set<uint64_t> judges;
  std::set<uint64_t> schedules;
  fixture_.judges().on<worker::JudgeBeginRequest>([&](const auto& asked, const Fd&) {
    judges.insert(asked.seed);
    return worker::JudgeBeginResponse{{.shapes = {{}}, .trials = {{}}}};
  });
  fixture_.candidates().on<worker::CandidateLoadRequest>([&](const auto& asked, const Fd&) {
    schedules.insert(asked.schedule_seed);
    return worker::CandidateLoadResponse();
  });
  ASSERT_TRUE(run());
  EXPECT_THAT(judges, SizeIs(2));
  EXPECT_THAT(schedules, SizeIs(2));
  judges.merge(schedules);
  EXPECT_THAT(judges, SizeIs(4));
  EXPECT_FALSE(judges.contains(kSeed));
}

TEST_F(StrictTest, OpensEachJudgeWithTheEvaluationsOptions) {
  int num_opened = 0;
  fixture_.judges().on<worker::JudgeOpenRequest>([&](const auto& asked, const Fd&) {
    ++num_opened;
    EXPECT_EQ(asked.options.trials, 3);
    EXPECT_EQ(asked.source, "class Model: pass");
    return worker::JudgeOpenResponse();
  });
  ASSERT_TRUE(run());
  EXPECT_EQ(num_opened, 2);
}

TEST_F(StrictTest, IsWrongWhereOneOfThemFindsSomething) {
  for (const int number : {1, 2}) {
    num_checks_ = 0;
    let_judge_find_wrong(number);
    EXPECT_EQ(decided<task::Wrong>().q, 0);
    EXPECT_EQ(num_checks_, number);
    EXPECT_THAT(audits_, ElementsAre(task::Audit{"other_seeds", "findings", ""}));
  }
}

TEST_F(StrictTest, ReturnsTheOutcomeOfTheFailingRepeat) {
  fixture_.candidates().fail<worker::CandidateRunThereRequest>(execute::ProcessEnd{11, 0});
  EXPECT_EQ(decided<task::Crashed>().signal, 11);
}

TEST_F(StrictTest, IsUnsupportedWhereTheTaskNoLongerFits) {
  fixture_.judges().fail<worker::JudgeOpenRequest>(
      execute::ErrorReply{"unsupported", "", {"Refusal", "too large", {}, {}}});
  EXPECT_EQ(decided<task::Unsupported>().constructs.at(0).message, "too large");
}

TEST_F(StrictTest, FailsWhereAJudgeDoes) {
  fixture_.judges().fail<worker::JudgeBeginRequest>(execute::ProcessEnd{9, 0});
  const auto ran = run();
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(audits_, SizeIs(0));
}

// A judge that cannot check may be broken.  Where a second one cannot check either, the candidate's
// outputs are the reason.
TEST_F(StrictTest, FailsWhereItCannotCheckUnlessItIsTheSecondTime) {
  fixture_.judges().fail<worker::JudgeCheckRequest>(
      execute::ErrorReply{"exception", "", {"Error", "cannot", {}, {}}});
  EXPECT_FALSE(run());
  fixture_.is_second = true;
  decided<task::Wrong>();
}

// ---- compute-sanitizer --------------------------------------------------------------------------

class StrictOnADevice : public StrictTest {
 protected:
  StrictOnADevice() {
    fixture_.compute_device = Device{"GPU-test", 0, {}};
    fixture_.machine.layout.prefix = fixture_.folder.path();
  }
  // The details of the tools' findings.
  std::vector<std::string> details() const {
    std::vector<std::string> found;
    for (const task::Audit& audit : audits_) {
      if (audit.result == "not_run") found.push_back(audit.detail);
    }
    return found;
  }
};

TEST_F(StrictOnADevice, DecidesNothingWithoutASanitizer) {
  const auto ran = run();
  ASSERT_TRUE(ran && !*ran);
  EXPECT_THAT(audits_, SizeIs(1 + execute::kSanitizerTools.size()));
  EXPECT_THAT(details(), testing::Each("compute-sanitizer is not installed"));
}

TEST_F(StrictOnADevice, DoesNotAuditACandidateForTheTasksSizesAlone) {
  passed_.generality = 0.5;
  fixture_.machine.sanitizer = "/nowhere/compute-sanitizer";
  const auto ran = run();
  ASSERT_TRUE(ran && !*ran);
  EXPECT_THAT(details(), SizeIs(execute::kSanitizerTools.size()));
  EXPECT_THAT(details(), testing::Each("right at the task's own sizes alone"));
}

TEST_F(StrictOnADevice, DoesNotAuditACandidateThatAJudgeFoundWrong) {
  let_judge_find_wrong(2);
  decided<task::Wrong>();
  EXPECT_THAT(audits_, SizeIs(1));
}

}  // namespace
}  // namespace mc::eval
