// SPDX-License-Identifier: Apache-2.0
#include "execute/measurement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "worker/fakes/fake_worker.h"

namespace mc::execute {
namespace {

using worker::FakeWorker;
using worker::Reaction;

const ErrorReply kRefused{"exception", "", {"Error", "cannot", {}, {}}};
const ErrorReply kNoRoom{"oom", "", {"Error", "no room", {}, {}}};

// Consecutive requests get consecutive reactions; the last one repeats.
template <typename Request>
void in_turn(FakeWorker& worker, std::vector<Reaction> reactions) {
  auto num = std::make_shared<size_t>(0);
  worker.on<Request>([reactions, num](const Request&, const Fd&) {
    return reactions[std::min((*num)++, reactions.size() - 1)];
  });
}

using Init = worker::JudgeInitRequest;
using Trial = worker::JudgeTrialRequest;
using Check = worker::JudgeCheckRequest;
using Load = worker::CandidateLoadRequest;
using Build = worker::CandidateBuildThereRequest;
using Forward = worker::CandidateRunThereRequest;
using Used = worker::DeviceUsedRequest;

// A judge that passes every candidate process, and a candidate process that fulfils every request;
// two trials.
class MeasurementTest : public testing::Test {
 protected:
  MeasurementTest() {
    judges_.say<Init>({.init_seed = 1, .training = true});
    judges_.say<Trial>({.digest = "d", .outputs_bytes_max = 1});
    judges_.say<Check>({.passed = true});
    candidates_.say<Load>({});
    candidates_.say<Build>({.missing = {"w"}});
    candidates_.say<Forward>({.aten = {{"aten::relu", 2}}});
    devices_.say<worker::DeviceAllowRequest>({});
    devices_.say<worker::DevicePutRequest>({});
    devices_.say<worker::DeviceReleaseRequest>({});
    devices_.say<Used>({});
    devices_.on<worker::DeviceTakeRequest>([](const auto& asked, const Fd&) {
      return worker::DeviceTakeResponse{.outputs = asked.outputs, .buffers = asked.buffers};
    });
  }

  Result<Measured> measure(const Pause& pause = [](Session&) {}) {
    JudgePlan plan;
    plan.shapes.push_back({"native", {}, {}});
    plan.shapes.push_back({"ragged", {{"N", 7}}, {}});
    plan.trials = {{0, 0, "native"}, {1, last_shape_, last_distribution_}};
    plan.needs_general = needs_general_;
    Judge judge(judges_.session(), plan);
    DeviceProcess device(devices_.session(), 10);
    return Measurement(limits_, program_, judge, policy_, 5, candidates_.session(), device)
        .run(pause);
  }
  // The outcome of the run; fails the test where there is none.
  template <typename Outcome>
  Outcome decided() {
    auto measured = measure();
    if (!measured) ADD_FAILURE() << measured.error().message;
    const auto* found = measured ? std::get_if<Outcome>(&measured->outcome) : nullptr;
    if (measured && found == nullptr) ADD_FAILURE() << task::outcome_name(measured->outcome);
    return found == nullptr ? Outcome() : *found;
  }

  FakeWorker judges_;
  FakeWorker candidates_;
  FakeWorker devices_;
  StageLimits limits_;
  Program program_{
      "", {}, [](std::string_view, uint64_t, std::string_view) { return task::SourceLocation{}; }};
  RunPolicy policy_{"test", {"*"}, 0};
  int last_shape_ = 0;
  std::string last_distribution_ = "signed";
  bool needs_general_ = false;
};

TEST_F(MeasurementTest, PassesWhatTheJudgePasses) {
  const auto measured = measure();
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_TRUE(std::holds_alternative<task::Passed>(measured->outcome));
  EXPECT_TRUE(measured->candidate.has_value());
  EXPECT_FALSE(measured->check_error.has_value());
  EXPECT_EQ(measured->state.missing, std::vector<std::string>{"w"});
  EXPECT_EQ(measured->aten_ops.at("aten::relu"), 4);
}

TEST_F(MeasurementTest, SendsInputsToTheCandidateAndItsOutputsToTheJudge) {
  judges_.on<Trial>([](const Trial& asked, const Fd&) {
    return worker::JudgeTrialResponse{.inputs = {"[" + std::to_string(asked.index) + "]"}};
  });
  candidates_.on<Forward>([](const Forward& asked, const Fd&) {
    return worker::CandidateRunThereResponse{.outputs = asked.inputs, .buffers = {{"b", {"7"}}}};
  });
  std::vector<std::string> checked;
  judges_.on<Check>([&](const Check& asked, const Fd&) {
    checked.push_back(asked.outputs.json + asked.buffers.at(0).name + asked.buffers[0].tree.json);
    EXPECT_EQ(asked.index, static_cast<int64_t>(checked.size()) - 1);
    return worker::JudgeCheckResponse{.passed = true};
  });
  EXPECT_EQ(decided<task::Passed>().trials.size(), 2u);
  EXPECT_EQ(checked, (std::vector<std::string>{"[0]b7", "[1]b7"}));
}

TEST_F(MeasurementTest, BuildsAllModelsBeforeTheFirstTrial) {
  last_shape_ = 1;
  decided<task::Passed>();
  EXPECT_EQ(candidates_.asked(), (std::vector<std::string>{"load", "build_there", "build_there",
                                                           "run_there", "run_there"}));
}

TEST_F(MeasurementTest, IsWrongWhereATrialIs) {
  in_turn<Check>(judges_, {worker::JudgeCheckResponse{.passed = true}.to_json(),
                           worker::JudgeCheckResponse{.passed = false}.to_json()});
  EXPECT_EQ(decided<task::Wrong>().q, 0.5);
}

TEST_F(MeasurementTest, IsWrongWhereInputsWereOverwritten) {
  judges_.say<Check>({.passed = true, .inputs_mutated = "x"});
  EXPECT_EQ(decided<task::Wrong>().q, 0);
}

TEST_F(MeasurementTest, CountsOtherShapesOnlyWhereTheTaskDemandsGeneralKernels) {
  last_shape_ = 1;
  in_turn<Check>(judges_, {worker::JudgeCheckResponse{.passed = true}.to_json(),
                           worker::JudgeCheckResponse{.passed = false}.to_json()});
  EXPECT_EQ(decided<task::Passed>().generality, 0);
}

TEST_F(MeasurementTest, CountsNaNOnlyWhereTheTaskDemandsGeneralKernels) {
  last_distribution_ = "nan";
  in_turn<Check>(judges_, {worker::JudgeCheckResponse{.passed = true}.to_json(),
                           worker::JudgeCheckResponse{.passed = false}.to_json()});
  EXPECT_EQ(decided<task::Passed>().generality, 0);
  needs_general_ = true;
  in_turn<Check>(judges_, {worker::JudgeCheckResponse{.passed = true}.to_json(),
                           worker::JudgeCheckResponse{.passed = false}.to_json()});
  const auto wrong = decided<task::Wrong>();
  EXPECT_EQ(wrong.q, 0.5);
  EXPECT_FALSE(wrong.specialised);
}

TEST_F(MeasurementTest, DoesNotRunATrialOfNaNThatNoOtherTrialPassedBefore) {
  last_distribution_ = "nonfinite";
  needs_general_ = true;
  in_turn<Check>(judges_, {worker::JudgeCheckResponse{.passed = false}.to_json(),
                           worker::JudgeCheckResponse{.passed = true}.to_json()});
  const auto wrong = decided<task::Wrong>();
  EXPECT_EQ(wrong.q, 0);
  EXPECT_EQ(wrong.trials.size(), 2u);
}

TEST_F(MeasurementTest, IsUnsupportedWhereTheTaskItselfFails) {
  judges_.fail<Trial>(
      ErrorReply{"task", "", {"Refusal", "ValueError: no", {"task", 7, 0, ""}, {}}});
  const auto measured = measure();
  ASSERT_FALSE(measured);
  EXPECT_EQ(measured.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(measured.error().message, testing::HasSubstr("the task fails: ValueError: no"));
}

TEST_F(MeasurementTest, SendsTheCandidateTheListOfInputsToWrite) {
  judges_.say<Trial>({.written = {2, 0}});
  candidates_.on<Forward>([](const Forward& asked, const Fd&) {
    EXPECT_EQ(asked.written, (std::vector<int64_t>{2, 0}));
    return worker::CandidateRunThereResponse();
  });
  decided<task::Passed>();
}

TEST_F(MeasurementTest, IsWrongAndSpecialisedWhereOtherShapesCount) {
  last_shape_ = 1;
  needs_general_ = true;
  in_turn<Check>(judges_, {worker::JudgeCheckResponse{.passed = true}.to_json(),
                           worker::JudgeCheckResponse{.passed = false}.to_json()});
  const auto wrong = decided<task::Wrong>();
  EXPECT_EQ(wrong.q, 0.5);
  EXPECT_TRUE(wrong.specialised);
}

TEST_F(MeasurementTest, PassesACandidateThatRejectsAnotherShape) {
  last_shape_ = 1;
  in_turn<Build>(candidates_, {worker::CandidateBuildThereResponse().to_json(), kRefused});
  const auto passed = decided<task::Passed>();
  EXPECT_EQ(passed.generality, 0);
  EXPECT_EQ(passed.trials.at(1).checks.at(0).problem, "exception");
}

TEST_F(MeasurementTest, IsACrashWhereTheCandidateThrows) {
  candidates_.fail<Build>(kRefused);
  EXPECT_EQ(decided<task::Crashed>().stage, "init");
  candidates_.fail<Load>(kRefused);
  EXPECT_EQ(decided<task::Crashed>().stage, "load");
}

TEST_F(MeasurementTest, IsACrashWhereTheCandidateDiesOfASignal) {
  candidates_.fail<Forward>(ProcessEnd{11, 0});
  const auto crashed = decided<task::Crashed>();
  EXPECT_EQ(crashed.stage, "forward");
  EXPECT_EQ(crashed.signal, 11);
}

TEST_F(MeasurementTest, TimesOutWhereTheCandidateHangs) {
  candidates_.fail<Forward>(worker::Hangs());
  EXPECT_EQ(decided<task::TimedOut>().stage, "forward");
}

TEST_F(MeasurementTest, IsACrashWhereTheReplyIsMalformed) {
  const std::string ran = worker::CandidateRunThereResponse().to_json();
  const std::string more = ran.substr(0, ran.size() - 1) + R"(,"passed":true})";
  for (const std::string& response : {std::string("{}"), std::string(R"({"ok": true})"), more}) {
    candidates_.say_raw<Forward>(response);
    EXPECT_EQ(decided<task::Crashed>().exception->type, "ProtocolError") << response;
  }
  candidates_.say_raw<Forward>(ran, /*has_region=*/true);
  EXPECT_EQ(decided<task::Crashed>().exception->type, "ProtocolError");
  candidates_.say_raw<Load>(R"({"ok": true})", /*has_region=*/true);
  EXPECT_EQ(decided<task::Crashed>().stage, "load");
}

TEST_F(MeasurementTest, IsIllegalWhereAnOperatorRanThatThePolicyDoesNotAllow) {
  policy_.operators = {"relu"};
  decided<task::Passed>();
  policy_.operators = {"empty"};
  EXPECT_EQ(decided<task::Illegal>().findings.at(0).rule, "run.aten");
}

TEST_F(MeasurementTest, IsIllegalWhereNoKernelOfItsOwnWasLaunched) {
  policy_.own_launches_min = 1;
  EXPECT_EQ(decided<task::Illegal>().findings.at(0).rule, "run.own_launch");
  judges_.say<Trial>({.returns_inputs = true});
  decided<task::Passed>();
  judges_.say<Trial>({});
  int64_t launches = 0;
  devices_.on<Used>([&](const Used&, const Fd&) {
    return worker::DeviceUsedResponse{.launches_own = launches++};
  });
  decided<task::Passed>();
}

TEST_F(MeasurementTest, PausesBeforeEachStepOfATrial) {
  int pauses = 0;
  ASSERT_TRUE(measure([&](Session& candidate) {
    ++pauses;
    candidate.suspend();  // The process resumes at the next request.
  }));
  EXPECT_EQ(pauses, 2 * 3) << "the judge's inputs, the call, the comparison";
}

TEST_F(MeasurementTest, IsWrongWithAReasonWhereTheJudgeCannotCheck) {
  const std::string checked = worker::JudgeCheckResponse{.passed = true}.to_json();
  for (const Reaction& second : {Reaction(kRefused), Reaction(kNoRoom), Reaction("[]")}) {
    in_turn<Check>(judges_, {checked, second});
    const auto measured = measure();
    ASSERT_TRUE(measured) << measured.error().message;
    EXPECT_TRUE(measured->check_error.has_value());
    const auto* wrong = std::get_if<task::Wrong>(&measured->outcome);
    ASSERT_NE(wrong, nullptr);
    EXPECT_EQ(wrong->q, 0);
    ASSERT_EQ(wrong->trials.size(), 2u);
    EXPECT_FALSE(wrong->trials[0].passed);
    EXPECT_EQ(wrong->trials[1].checks.at(0).problem, "malformed");
  }
}

TEST_F(MeasurementTest, IsOutOfMemoryWhereTheCandidateTookTheJudgesMemory) {
  const std::string given = worker::JudgeTrialResponse().to_json();
  in_turn<Trial>(judges_, {given, kNoRoom, given});
  decided<task::OutOfMemory>();
  EXPECT_EQ(candidates_.num_alive(), 0);
}

TEST_F(MeasurementTest, FailsWhereTheJudgeLacksMemoryWithoutTheCandidateToo) {
  judges_.fail<Trial>(kNoRoom);
  const auto measured = measure();
  ASSERT_FALSE(measured);
  EXPECT_EQ(measured.error().code, ErrorCode::kExhausted);
}

TEST_F(MeasurementTest, FailsWhereTheJudgeFailsBeforeItChecks) {
  judges_.fail<Trial>(kRefused);
  EXPECT_FALSE(measure());
  judges_.fail<Init>(ProcessEnd{9, 0});
  EXPECT_FALSE(measure());
}

}  // namespace
}  // namespace mc::execute
