// SPDX-License-Identifier: Apache-2.0
//
// Measurement with the counts and copies of the device process.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "execute/device_process.h"
#include "execute/executor.h"
#include "execute/measurement.h"
#include "worker/fakes/fake_worker.h"

namespace mc::execute {
namespace {

using worker::FakeWorker;

using Build = worker::CandidateBuildThereRequest;
using Forward = worker::CandidateRunThereRequest;
using Used = worker::DeviceUsedRequest;
using Put = worker::DevicePutRequest;
using Take = worker::DeviceTakeRequest;

// A judge, a candidate process and a device process that fulfil every request; one trial.
class DeviceMeasurement : public testing::Test {
 protected:
  DeviceMeasurement() {
    plan_.shapes.push_back({"native", {}, {}});
    plan_.trials = {{0, 0, "native"}};
    judges_.say<worker::JudgeInitRequest>({.init = {R"({"t":"tensor"})"}, .training = true});
    judges_.say<worker::JudgeTrialRequest>({.inputs = {R"(["inputs"])"}});
    judges_.say<worker::JudgeCheckRequest>({.passed = true});
    candidates_.say<worker::CandidateLoadRequest>({});
    candidates_.say<Build>({});
    candidates_.say<Forward>({.outputs = {R"(["there"])"}});
    devices_.say<worker::DeviceAllowRequest>({});
    devices_.say<Put>({.address = 4096});
    devices_.say<worker::DeviceReleaseRequest>({});
    devices_.say<Take>({.outputs = {R"(["here"])"}});
    devices_.say<Used>({});
  }

  Result<Measured> measure() {
    Judge judge(judges_.session(), plan_);
    DeviceProcess device(devices_.session(), 10);
    return Measurement(limits_, program_, judge, policy_, 5, candidates_.session(), device)
        .run([](Session&) {});
  }
  // The same by an executor, which decides what the end of the device process means.
  Result<Measured> measure_by_executor() {
    Judge judge(judges_.session(), plan_);
    CandidateProcess candidate{candidates_.session(),
                               std::make_unique<DeviceProcess>(devices_.session(), 10)};
    const auto spawn = [this](Role, const ChildLimits&) -> Result<Session> {
      return candidates_.session();  // No process is started.
    };
    Executor executor(Zygotes{spawn}, nullptr, limits_);
    return executor.measure(std::move(candidate), program_, judge, policy_, 5);
  }
  template <typename Outcome>
  Outcome decided() {
    auto measured = measure();
    if (!measured) ADD_FAILURE() << measured.error().message;
    const auto* found = measured ? std::get_if<Outcome>(&measured->outcome) : nullptr;
    if (measured && found == nullptr) ADD_FAILURE() << task::outcome_name(measured->outcome);
    return found == nullptr ? Outcome() : *found;
  }

  JudgePlan plan_;
  FakeWorker judges_;
  FakeWorker candidates_;
  FakeWorker devices_;
  StageLimits limits_;
  Program program_{
      "", {}, [](std::string_view, uint64_t, std::string_view) { return task::SourceLocation{}; }};
  RunPolicy policy_{"test", {}, 0};
};

TEST_F(DeviceMeasurement, SendsAddressesToTheCandidateAndCopiedOutputsToTheJudge) {
  int64_t response = 0;
  candidates_.on<Forward>([&](const Forward& asked, const Fd&) {
    response = asked.address;
    return worker::CandidateRunThereResponse{.outputs = {R"(["there"])"}};
  });
  std::string checked;
  judges_.on<worker::JudgeCheckRequest>([&](const auto& asked, const Fd&) {
    checked = asked.outputs.json;
    return worker::JudgeCheckResponse{.passed = true};
  });
  decided<task::Passed>();
  EXPECT_EQ(response, 4096);
  EXPECT_EQ(checked, R"(["here"])");
}

TEST_F(DeviceMeasurement, CountsLaunchesOfTheCallByTheDeviceProcess) {
  policy_.own_launches_min = 1;
  devices_.say<Used>({.launches_own = 3});  // All of them happened before the call.
  EXPECT_EQ(decided<task::Illegal>().findings.at(0).rule, "run.own_launch");
}

TEST_F(DeviceMeasurement, RejectsMoreBytesToTheHostThanACallMayCopy) {
  int64_t bytes = 1000;  // The bytes before there were inputs.
  devices_.on<Used>(
      [&](const Used&, const Fd&) { return worker::DeviceUsedResponse{.bytes_to_host = bytes}; });
  int64_t more = 16;
  candidates_.on<Forward>([&](const Forward&, const Fd&) {
    bytes += more;
    return worker::CandidateRunThereResponse{};
  });
  decided<task::Passed>();
  more = 17;
  EXPECT_EQ(decided<task::Illegal>().findings.at(0).rule, "run.host_transfer");
  policy_.operators = {"*"};
  decided<task::Passed>();
}

TEST_F(DeviceMeasurement, RefusesKernelsThatThePolicyDoesNotName) {
  devices_.say<Used>({.forbidden = "_ZN2at6native7softmaxEv"});
  const auto illegal = decided<task::Illegal>();
  EXPECT_EQ(illegal.findings.at(0).rule, "run.library_kernel");
  EXPECT_NE(illegal.findings[0].message.find("at::native::softmax"), std::string::npos);
}

TEST_F(DeviceMeasurement, IsUnsupportedWhereTheDeviceProcessLacksARequestedFeature) {
  devices_.say<Used>({.unsupported = "cudaMallocManaged"});
  decided<task::Passed>();
  candidates_.fail<Forward>(ErrorReply{"exception", "forward", {"RuntimeError", "no", {}, {}}});
  const auto unsupported = decided<task::Unsupported>();
  EXPECT_EQ(unsupported.constructs.at(0).rule, "device.unsupported");
  EXPECT_NE(unsupported.constructs[0].message.find("cudaMallocManaged"), std::string::npos);
}

// A misaligned read at a size that does not count leaves a fault on the device.
TEST_F(DeviceMeasurement, ACandidateThatThrewAtAnotherShapeIsNotTimed) {
  plan_.shapes.push_back({"ragged", {}, {}});
  plan_.trials.push_back({1, 1, "ragged"});
  ASSERT_TRUE(measure()->candidate.has_value());
  candidates_.on<Forward>([](const Forward& asked, const Fd&) -> worker::Reaction {
    if (asked.shape == 0) {
      return worker::CandidateRunThereResponse{.outputs = {R"(["there"])"}}.to_json();
    }
    return ErrorReply{"exception", "forward", {"RuntimeError", "misaligned address", {}, {}}};
  });
  const auto measured = measure();
  ASSERT_TRUE(std::holds_alternative<task::Passed>(measured->outcome));
  EXPECT_FALSE(measured->candidate.has_value());
}

TEST_F(DeviceMeasurement, OutputsThatAreNotOnTheDeviceFailTheCandidate) {
  devices_.fail<Take>(ErrorReply{"protocol", "", {"Refusal", "not in its memory", {}, {}}});
  const auto measured = measure();
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_FALSE(std::holds_alternative<task::Passed>(measured->outcome));
  EXPECT_FALSE(std::holds_alternative<task::Infra>(measured->outcome));
}

TEST_F(DeviceMeasurement, AFailureOfTheDeviceProcessIsAnError) {
  devices_.fail<Put>(worker::Reaction(ProcessEnd{9, 0}));
  EXPECT_FALSE(measure());
}

constexpr int kFailedCheckExit = 70;  // The number is that of device/check.h.

TEST_F(DeviceMeasurement, BlamesTheCandidateForTheEndOfTheDeviceProcess) {
  devices_.fail<Put>(worker::ProcessEnd{0, 1});
  const auto measured = measure_by_executor();
  ASSERT_TRUE(measured);
  EXPECT_EQ(std::get<task::Crashed>(measured->outcome).exception->type, "DeviceProcessEnded");
}

TEST_F(DeviceMeasurement, BlamesNoCandidateForAFailedCheckInTheDeviceProcess) {
  devices_.fail<Put>(worker::ProcessEnd{0, kFailedCheckExit});
  const auto measured = measure_by_executor();
  ASSERT_FALSE(measured);
  EXPECT_NE(measured.error().message.find("a check in the device process failed"),
            std::string::npos);
}

// The candidate's process may be the only one that waits for the device process.
TEST_F(DeviceMeasurement, FindsAFailedCheckAfterTheCandidatesOwnEnd) {
  candidates_.fail<Forward>(worker::ProcessEnd{0, 1});
  devices_.fail<worker::DeviceCloseRequest>(worker::ProcessEnd{0, kFailedCheckExit});
  EXPECT_FALSE(measure_by_executor());
  devices_.say<worker::DeviceCloseRequest>({});
  EXPECT_TRUE(measure_by_executor());
}

}  // namespace
}  // namespace mc::execute
