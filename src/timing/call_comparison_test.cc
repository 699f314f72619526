// SPDX-License-Identifier: Apache-2.0
#include "timing/call_comparison.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "worker/fakes/fake_worker.h"

namespace mc::timing {
namespace {

using worker::FakeWorker;
using Calls = worker::ContestantTimeCallsThereQuestion;
using BaselineCalls = worker::BaselineTimeCallsQuestion;
using Finish = worker::DeviceTimeFinishQuestion;
using Take = worker::DeviceTimeTakeQuestion;
using Check = worker::JudgeTimeCheckQuestion;
using Timed = CallComparison::Timed;
using execute::Refusal;

// A candidate whose calls take 10 us, and a baseline whose calls take 20.
class CallComparisonTest : public testing::Test {
 protected:
  CallComparisonTest() {
    judge_.say<worker::JudgeTimePlanQuestion>(
        {.inputs_bytes = 512, .outputs_bytes = 512, .operations = 1, .written = {1}});
    judge_.say<worker::JudgeTimeShareQuestion>(
        {.inputs = {R"({"t":"tensor"})"}, .stride = 512, .nbytes = 1 << 21});
    judge_.say<worker::JudgeTimeRoomQuestion>({.free_bytes = int64_t{1} << 34});
    judge_.say<worker::JudgeTimeGenerateInputsQuestion>({});
    judge_.say<worker::JudgeTimeCloseQuestion>({});
    judge_.on<Check>([this](const Check& asked, const Fd&) {
      checked_.push_back(asked.call);
      return worker::JudgeTimeCheckAnswer{problem_};
    });
    device_.say<worker::DeviceTimePrepareQuestion>({.address = 4096});
    device_.on<worker::DeviceTimeStartQuestion>([this](const auto& asked, const Fd&) {
      calls_ = asked.calls;
      gated_.push_back(asked.is_gated);
      return worker::DeviceTimeStartAnswer{};
    });
    device_.on<Finish>([this](const Finish&, const Fd&) {
      const auto count = static_cast<size_t>(calls_);
      return worker::DeviceTimeFinishAnswer{.us = std::vector<double>(count, own_us_),
                                            .host_us = host_us_,
                                            .launches_own = std::vector<int64_t>(count, 2),
                                            .queued_whole = gated_.back() ? queued_whole_ : 0};
    });
    device_.say<Take>({.outputs = {R"(["here"])"}});
    contestant_.say<Calls>({.outputs = {R"(["there"])"}});
    baseline_.on<BaselineCalls>([](const BaselineCalls& asked, const Fd&) {
      return worker::BaselineTimeCallsAnswer{
          .us = std::vector<double>(static_cast<size_t>(asked.calls), 20),
          .queued_whole = asked.is_gated ? asked.calls : 0};
    });
  }

  execute::Stage<Timed> compare() {
    using Ran = std::variant<Timed, task::Outcome>;
    execute::JudgePlan plan;
    plan.shapes.push_back({"native", {}, {}});
    execute::Judge judge(judge_.session(), plan);
    execute::DeviceProcess device(device_.session(), 10);
    execute::Session candidate = contestant_.session();
    execute::Session baseline = baseline_.session();
    options_.make_quick();
    CallComparison comparison(judge, {candidate, device}, baseline, limits_, options_, nullptr);
    MC_TRY(auto early, comparison.warm_up(), "warm-up");
    if (early) return Ran(std::move(*early));
    return comparison.run();
  }
  Timed timed() {
    auto ran = compare();
    if (!ran) ADD_FAILURE() << ran.error().message;
    const auto* found = ran ? std::get_if<Timed>(&*ran) : nullptr;
    if (ran && found == nullptr) ADD_FAILURE() << task::outcome_name(std::get<1>(*ran));
    return found == nullptr ? Timed() : *found;
  }
  std::string decided() {
    auto ran = compare();
    if (!ran) return "error: " + ran.error().message;
    return std::holds_alternative<Timed>(*ran) ? "timed" : task::outcome_name(std::get<1>(*ran));
  }

  FakeWorker judge_, contestant_, device_, baseline_;
  execute::StageLimits limits_;
  CallOptions options_;
  double own_us_ = 10;
  std::vector<double> host_us_;
  int64_t queued_whole_ = 1 << 20;
  int64_t calls_ = 0;
  std::string problem_;
  std::vector<bool> gated_;
  std::vector<int64_t> checked_;
};

TEST_F(CallComparisonTest, IsTheRatioOfTheRoundsMedians) {
  const Timed found = timed();
  EXPECT_DOUBLE_EQ(found.performance.time_us.median, 10);
  EXPECT_DOUBLE_EQ(found.performance.time_eager_us.median, 20);
  EXPECT_DOUBLE_EQ(found.performance.speedup_eager.median, 2);
  EXPECT_EQ(found.performance.timing.mode, "enqueued");
  EXPECT_EQ(found.performance.timing.batches, 5);
  EXPECT_EQ(found.launches_own_least, 2);
}

TEST_F(CallComparisonTest, ChecksTheLastCallOfEachBatch) {
  timed();
  ASSERT_FALSE(checked_.empty());
  EXPECT_EQ(checked_.back(), calls_ - 1);
  problem_ = "off by one";
  EXPECT_EQ(decided(), "wrong");
}

TEST_F(CallComparisonTest, FewerCallsOfASlowCandidate) {
  timed();
  const int64_t calls = calls_;
  own_us_ = 1000;
  timed();
  EXPECT_LT(calls_, calls);
  EXPECT_GE(calls_, 3);
}

TEST_F(CallComparisonTest, TellsTheCandidateWhereInputsAppearAndWhichItWrites) {
  std::vector<int64_t> told;
  contestant_.on<Calls>([&](const Calls& asked, const Fd&) {
    told = {asked.address, asked.stride, asked.written.at(0)};
    return worker::ContestantTimeCallsThereAnswer{.outputs = {R"(["there"])"}};
  });
  timed();
  EXPECT_EQ(told, (std::vector<int64_t>{4096, 512, 1}));
}

TEST_F(CallComparisonTest, EventsThatAreForgedDoNotCountAgainstTheHostsClock) {
  host_us_ = {110, 90, 300};  // The least of a round counts, less what the host's clock is off by.
  const task::Performance forged = timed().performance;
  EXPECT_DOUBLE_EQ(forged.time_us.median, 0.9 * 90 - 5);
  EXPECT_DOUBLE_EQ(forged.speedup_eager.median, 2 * 10 / (0.9 * 90 - 5));
  EXPECT_EQ(forged.timing.notes.size(), 1u);
  host_us_ = {14, 400};
  EXPECT_DOUBLE_EQ(timed().performance.time_us.median, 10);
}

// Whoever waits for the device in a call is timed without a gate from then on.
TEST_F(CallComparisonTest, ACandidateThatWaitsForTheDeviceIsTimedWithItsHost) {
  queued_whole_ = 0;
  EXPECT_EQ(timed().performance.timing.mode, "host_synchronous");
  EXPECT_EQ(gated_, (std::vector<bool>{false, true, false, false, false, false, false}));
}

TEST_F(CallComparisonTest, WhatTheCandidateCausesIsItsOutcome) {
  device_.fail<Finish>(Refusal{"protocol", "", {"Refusal", "not all calls", {}, {}}});
  EXPECT_EQ(decided().find("error"), std::string::npos);
  device_.say<Finish>({.us = {1}, .host_us = {}, .launches_own = {1}, .queued_whole = 1});
  device_.fail<Take>(Refusal{"protocol", "", {"Refusal", "other outputs", {}, {}}});
  EXPECT_EQ(decided(), "wrong");
  contestant_.fail<Calls>(worker::Reaction(execute::Death{11, 0}));
  EXPECT_EQ(decided(), "runtime");
}

TEST_F(CallComparisonTest, WhatTheMachineCausesIsAnError) {
  baseline_.fail<BaselineCalls>(worker::Reaction(execute::Death{9, 0}));
  EXPECT_EQ(decided().find("error"), 0u);
  device_.fail<Finish>(worker::Reaction(execute::Death{9, 0}));
  EXPECT_EQ(decided().find("error"), 0u);
}

}  // namespace
}  // namespace mc::timing
