// SPDX-License-Identifier: Apache-2.0
#include "eval/devices.h"

#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/cancel.h"
#include "worker/fakes/fake_worker.h"

namespace mc::eval {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Two devices; processes of a dead one get no context.
class DevicesTest : public testing::Test {
 protected:
  DevicesTest() { use(known_); }
  // REQUIRES: `known` outlives the test's body.
  void use(const std::vector<Device>& known) {
    auto scheduler =
        std::make_unique<Scheduler>(std::vector<int64_t>(known.size(), Schedule::kAll));
    std::vector<std::unique_ptr<DeviceState>> states;
    for (size_t i = 0; i < known.size(); ++i) {
      states.push_back(std::make_unique<DeviceState>(
          &known[i], DeviceSchedule{*scheduler, i},
          execute::Zygotes([this](auto role, const auto& limits) { return spawn(role, limits); }),
          nullptr, 0, execute::StageLimits()));
    }
    devices_.emplace(std::move(scheduler), std::move(states),
                     [this](std::string_view line) { reports_.emplace_back(line); });
  }

  Result<execute::Session> spawn(execute::Role role, const execute::ChildLimits& limits) {
    EXPECT_EQ(role, execute::Role::kDevice);
    spawned_.push_back(limits);
    if (dead_.contains(limits.environment.at(0))) {
      return Error{ErrorCode::kUnavailable, "no CUDA-capable device"};
    }
    return worker_.session();
  }

  // The verdict of a candidate that fails on the devices in `failing_`.
  task::Verdict measure() {
    return devices_->measure("key", [&](DeviceState& on) {
      task::Verdict verdict;
      verdict.protocol.device = on.device->id;
      if (failing_.contains(on.device->id)) {
        verdict.outcome = task::Infra{"it failed"};
      } else {
        verdict.outcome = task::Passed();
      }
      return verdict;
    });
  }

  const std::vector<Device> known_ = {
      {"GPU-a", 0, {"/dev/nvidia0"}, {"CUDA_VISIBLE_DEVICES=GPU-a"}},
      {"GPU-b", 0, {"/dev/nvidia1"}, {"CUDA_VISIBLE_DEVICES=GPU-b"}}};
  worker::FakeWorker worker_;
  std::set<std::string> dead_;     // The environment variables that name dead devices.
  std::set<std::string> failing_;  // Their ids.
  std::vector<execute::ChildLimits> spawned_;
  std::vector<std::string> reports_;
  std::optional<Devices> devices_;
};

TEST_F(DevicesTest, ACandidateOnADeadDeviceIsMeasuredOnAnotherDevice) {
  failing_ = {"GPU-a"};
  dead_ = {"CUDA_VISIBLE_DEVICES=GPU-a"};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(measure().protocol.device, "GPU-b");
  ASSERT_EQ(reports_.size(), 1);
  EXPECT_THAT(reports_[0], HasSubstr("GPU-a is set aside"));
  EXPECT_THAT(reports_[0], HasSubstr("no CUDA-capable device"));
  ASSERT_EQ(spawned_.size(), 1);  // The probe.
  EXPECT_THAT(spawned_[0].devices, ElementsAre("/dev/nvidia0"));
}

TEST_F(DevicesTest, AFailureOnADeviceThatStillWorksIsReturned) {
  failing_ = {"GPU-a"};
  EXPECT_EQ(measure().protocol.device, "GPU-a");
  EXPECT_EQ(measure().protocol.device, "GPU-a");
  EXPECT_THAT(reports_, IsEmpty());
}

TEST_F(DevicesTest, TheLastDeviceIsNotSetAside) {
  failing_ = {"GPU-a", "GPU-b"};
  dead_ = {"CUDA_VISIBLE_DEVICES=GPU-a", "CUDA_VISIBLE_DEVICES=GPU-b"};
  for (int i = 0; i < 2; ++i) {
    const task::Verdict verdict = measure();
    EXPECT_EQ(verdict.protocol.device, "GPU-b");
    EXPECT_TRUE(std::holds_alternative<task::Infra>(verdict.outcome));
  }
  EXPECT_EQ(reports_.size(), 1);
}

TEST_F(DevicesTest, ACandidateThatFailedOnTwoDevicesIsNotMeasuredOnAThird) {
  const std::vector<Device> three = {
      known_[0], known_[1], {"GPU-c", 0, {"/dev/nvidia2"}, {"CUDA_VISIBLE_DEVICES=GPU-c"}}};
  use(three);
  failing_ = {"GPU-a", "GPU-b"};
  dead_ = {"CUDA_VISIBLE_DEVICES=GPU-a", "CUDA_VISIBLE_DEVICES=GPU-b"};
  EXPECT_EQ(measure().protocol.device, "GPU-b");
  EXPECT_EQ(measure().protocol.device, "GPU-c");
  devices_.reset();  // Destroyed before `three`.
}

TEST_F(DevicesTest, ACancelledCandidateIsNotMeasuredAgain) {
  failing_ = {"GPU-a"};
  dead_ = {"CUDA_VISIBLE_DEVICES=GPU-a"};
  std::stop_source stop;
  stop.request_stop();
  const CancelScope scope(stop.get_token());
  EXPECT_EQ(measure().protocol.device, "GPU-a");
  EXPECT_THAT(spawned_, IsEmpty());
}

TEST_F(DevicesTest, TwoCandidatesAreTimedAtOnceOnTwoDevices) {
  std::vector<std::string> ids;
  devices_->measure("key", [&](DeviceState& first) {
    const auto alone = first.schedule.turn(Schedule::Use::kExclusive);
    devices_->measure("key", [&](DeviceState& second) {
      const auto also_alone = second.schedule.turn(Schedule::Use::kExclusive);
      ids = {first.device->id, second.device->id};
      return task::Verdict();
    });
    return task::Verdict();
  });
  EXPECT_THAT(ids, ElementsAre("GPU-a", "GPU-b"));
}

}  // namespace
}  // namespace mc::eval
