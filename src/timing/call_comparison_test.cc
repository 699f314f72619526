// SPDX-License-Identifier: Apache-2.0
#include "timing/call_comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "timing/fakes/timed_fakes.h"

namespace mc::timing {
namespace {

using Calls = worker::CandidateTimeCallsThereRequest;
using Finish = worker::DeviceTimeFinishRequest;
using Take = worker::DeviceTimeTakeRequest;
using Timed = CallComparison::Timed;
using execute::ErrorReply;

// A candidate whose calls take 10 us, and a baseline whose calls take 20.
class CallComparisonTest : public testing::Test {
 protected:
  execute::Stage<Timed> compare() {
    using Ran = std::variant<Timed, task::Outcome>;
    execute::JudgePlan plan;
    plan.shapes.push_back({"native", {}, {}});
    execute::Judge judge(fakes_.judges.session(), plan);
    execute::DeviceProcess device(fakes_.devices.session(), 10);
    execute::Session candidate = fakes_.candidates.session();
    execute::Session compiled = fakes_.compiled.session();
    options_.make_quick();
    const TimedProcess own =
        is_compiled_ ? TimedProcess{&compiled} : TimedProcess{&candidate, &device};
    CallComparison comparison(judge, own, {}, limits_, options_, nullptr);
    MC_TRY(auto early, comparison.warm_up([] {}), "warm-up");
    if (early) return Ran(std::move(*early));
    num_compared_early_ = fakes_.checked.size();
    MC_TRY(early, comparison.run(), "rounds");
    if (early) return Ran(std::move(*early));
    num_compared_early_ = fakes_.checked.size() - num_compared_early_;
    return comparison.finish([] {});
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

  TimedFakes fakes_;
  execute::StageLimits limits_;
  CallOptions options_;
  bool is_compiled_ = false;       // True if two baselines are compared.
  size_t num_compared_early_ = 0;  // The number of outputs that were compared during exclusive use.
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

// A candidate that could predict the checked calls could skip the work of the others.
TEST_F(CallComparisonTest, ChecksCallsThatCannotBePredicted) {
  options_.seed = std::random_device()();
  timed();
  EXPECT_GE(fakes_.checked.size(), 10u);
  const std::vector<int64_t> first = fakes_.checked;
  options_.seed += 1;
  fakes_.checked.clear();
  timed();
  EXPECT_NE(fakes_.checked, first);
  fakes_.problem = "off by one";
  EXPECT_EQ(decided(), "wrong");
}

TEST_F(CallComparisonTest, ComparesOutputsForTheirOwnInputsAfterExclusiveUse) {
  timed();
  EXPECT_EQ(num_compared_early_, 0u);
  const auto& when = fakes_.drawn_when_checked;  // Three comparisons of the warm-up come first.
  EXPECT_EQ(std::vector<int64_t>(when.begin() + 3, when.end()),
            (std::vector<int64_t>{3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8}));
}

TEST_F(CallComparisonTest, ComparesLargeOutputsAndThoseOfUnrepeatableInputsAtOnce) {
  fakes_.plan.draws_again = false;
  timed();
  EXPECT_EQ(num_compared_early_, 11u);
  fakes_.plan.draws_again = true;
  fakes_.plan.outputs_bytes = int64_t{1} << 29;
  timed();
  EXPECT_EQ(num_compared_early_, 9u);
}

TEST_F(CallComparisonTest, ComparesOnlyTheLastCallWhereItAloneHasNumbers) {
  fakes_.candidates.say<Calls>(
      {.outputs = {
           R"({"t":"tuple","items":[{"t":"dict","items":[["x",{"t":"float","hex":"0x1p0"}]]}]})"}});
  timed();
  const int64_t last = fakes_.room.back() - 1;
  ASSERT_GT(last, 0);
  EXPECT_EQ(std::vector<int64_t>(fakes_.checked.end() - 6, fakes_.checked.end() - 1),
            std::vector<int64_t>(5, last))
      << "a check for each round; the piecewise call comes last";
}

TEST_F(CallComparisonTest, WaitsUntilTheDriverHasClearedFreedMemory) {
  double slept_s = 0;
  const auto start = std::chrono::steady_clock::now();
  const auto now = [&] {
    return start + std::chrono::nanoseconds(static_cast<int64_t>(slept_s * 1e9));
  };
  options_.clock = {now, [&](Clock::Seconds time) { slept_s += time.count(); }};
  timed();
  EXPECT_LT(slept_s, 1e-3);
  slept_s = 0;
  fakes_.checked.clear();
  fakes_.plan.outputs_bytes = int64_t{5} << 30;  // Compared at once.
  timed();
  // The last copy causes no wait.
  const auto copies = static_cast<double>(fakes_.checked.size() - 1);
  EXPECT_NEAR(slept_s, copies * static_cast<double>(int64_t{5} << 30) / 2.5e11, 0.01);
}

TEST_F(CallComparisonTest, TakesFewerRoundsOfACandidateThatIsFarSlower) {
  fakes_.own_us = 201;
  EXPECT_EQ(timed().performance.timing.batches, 3);
}

TEST_F(CallComparisonTest, TakesFewerCallsOfASlowCandidate) {
  timed();
  const int64_t calls = fakes_.room.back();
  fakes_.own_us = 1000;
  timed();
  EXPECT_LT(fakes_.room.back(), calls);
  EXPECT_GE(fakes_.room.back(), 3);
}

TEST_F(CallComparisonTest, TakesOneCallARoundWhereACallIsLong) {
  fakes_.own_us = fakes_.eager_us = 20'000;
  const Timed found = timed();
  EXPECT_EQ(fakes_.room.back(), 1);
  EXPECT_EQ(found.performance.timing.batches, 5);
  EXPECT_EQ(fakes_.checked.size(), 1 + 1 + 5 + 1) << "a call is compared once";
}

TEST_F(CallComparisonTest, TakesNoMoreCallsThanFitIntoMemory) {
  // The outputs of two calls may be one MiB larger than expected.
  options_.batch_bytes_max = 3 << 20;
  timed();
  EXPECT_EQ(fakes_.room, (std::vector<int64_t>{2, 2}));
  options_.batch_bytes_max = 1;
  timed();
  EXPECT_EQ(fakes_.room.back(), 1);
}

TEST_F(CallComparisonTest, SendsTheCandidateTheAddressOfInputsAndTheWrittenOnes) {
  std::vector<int64_t> response;
  fakes_.candidates.on<Calls>([&](const Calls& asked, const Fd&) {
    response = {asked.address, asked.stride, asked.written.at(0)};
    return worker::CandidateTimeCallsThereResponse{.outputs = {R"(["there"])"}};
  });
  timed();
  EXPECT_EQ(response, (std::vector<int64_t>{4096, 512, 1}));
}

TEST_F(CallComparisonTest, ForgedEventsAreOverruledByTheHostClock) {
  // The least value of a round counts, less the clock's tolerance.
  fakes_.host_us = {110, 90, 300};
  const task::Performance forged = timed().performance;
  EXPECT_DOUBLE_EQ(forged.time_us.median, 0.9 * 90 - 5);
  EXPECT_DOUBLE_EQ(forged.speedup_eager.median, 2 * 10 / (0.9 * 90 - 5));
  EXPECT_EQ(forged.timing.notes.size(), 1u);
  fakes_.host_us = {14, 400};
  EXPECT_DOUBLE_EQ(timed().performance.time_us.median, 10);
}

// A side that waits for the device in a call is timed without a gate from then on.
TEST_F(CallComparisonTest, ACandidateThatWaitsForTheDeviceIsTimedWithHostTime) {
  fakes_.queued_whole = 0;
  EXPECT_EQ(timed().performance.timing.mode, "host_synchronous");
  EXPECT_EQ(fakes_.gated,
            (std::vector<bool>{false, true, false, false, false, false, false, false}));
  EXPECT_TRUE(fakes_.baseline_gated.back());
}

TEST_F(CallComparisonTest, ABaselineIsQueuedLikeALongCandidate) {
  fakes_.long_calls = 1;
  const task::Performance found = timed().performance;
  EXPECT_FALSE(fakes_.baseline_gated.back());
  EXPECT_EQ(found.timing.notes.size(), 1u);
}

TEST_F(CallComparisonTest, OneMoreCallIsMeasuredLaunchByLaunch) {
  const Timed found = timed();
  ASSERT_EQ(found.kernels.size(), 1u);
  EXPECT_EQ(found.kernels[0].name, "kernel");
  EXPECT_TRUE(fakes_.itemised.back());
  EXPECT_EQ(fakes_.calls.back(), 1);
  EXPECT_EQ(std::ranges::count(fakes_.itemised, true), 1);
  EXPECT_EQ(found.performance.memory_bytes, fakes_.memory_bytes);
  EXPECT_EQ(found.performance.memory_eager_bytes, 2 * fakes_.memory_bytes);
}

TEST_F(CallComparisonTest, TheCallThatIsMeasuredLaunchByLaunchIsVerifiedToo) {
  const Timed found = timed();
  EXPECT_EQ(fakes_.checked.back(), 0);
  EXPECT_EQ(found.performance.timing.calls_verified, static_cast<int64_t>(fakes_.checked.size()));
  EXPECT_EQ(fakes_.checked.size() % 2, 0) << "one of the first, two of each other, and that one";
}

TEST_F(CallComparisonTest, ABaselineWithoutMeasuredMemoryAddsANote) {
  fakes_.judges.fail<worker::JudgeTimeMemoryRequest>(
      ErrorReply{"oom", "", {"OutOfMemoryError", "no room", {}, {}}});
  const task::Performance found = timed().performance;
  EXPECT_EQ(found.memory_bytes, fakes_.memory_bytes);
  EXPECT_EQ(found.memory_eager_bytes, 0);
  ASSERT_EQ(found.timing.notes.size(), 1u);
  EXPECT_NE(found.timing.notes[0].find("no room"), std::string::npos);
}

TEST_F(CallComparisonTest, BaselinesAreTrusted) {
  is_compiled_ = true;
  const Timed found = timed();
  EXPECT_DOUBLE_EQ(found.performance.time_us.median, 15);
  EXPECT_TRUE(found.kernels.empty());
  EXPECT_TRUE(fakes_.checked.empty());
}

TEST_F(CallComparisonTest, AFailureOfTheCandidateIsItsOutcome) {
  fakes_.devices.fail<Finish>(ErrorReply{"protocol", "", {"Refusal", "not all calls", {}, {}}});
  EXPECT_EQ(decided().find("error"), std::string::npos);
  fakes_.devices.say<Finish>({.us = {1}, .host_us = {}, .launches_own = {1}, .queued_whole = 1});
  fakes_.devices.fail<Take>(ErrorReply{"protocol", "", {"Refusal", "other outputs", {}, {}}});
  EXPECT_EQ(decided(), "wrong");
  fakes_.candidates.fail<Calls>(worker::Reaction(execute::ProcessEnd{11, 0}));
  EXPECT_EQ(decided(), "runtime");
}

// A candidate that was fast before is timed with exclusive use, and others wait for it.
TEST_F(CallComparisonTest, AHangingBatchDoesNotTakeTheWholeLimit) {
  options_.patience_s = 0.05;
  const auto limit = [&] {
    auto ran = compare();
    EXPECT_TRUE(ran.has_value());
    return std::get<task::TimedOut>(std::get<task::Outcome>(*ran)).limit_s;
  };
  int calls = 0;
  fakes_.candidates.on<Calls>([&](const Calls&, const Fd&) -> worker::Reaction {
    if (calls++ > 0) return worker::Hangs();
    return worker::CandidateTimeCallsThereResponse{.outputs = {R"(["there"])"}}.to_json();
  });
  EXPECT_LT(limit(), 1);
  fakes_.candidates.say<Calls>({.outputs = {R"(["there"])"}});
  int finished = 0;
  fakes_.devices.on<Finish>([&](const Finish&, const Fd&) -> worker::Reaction {
    if (finished++ > 0) return worker::Hangs();
    return worker::DeviceTimeFinishResponse{.us = {10}, .launches_own = {2}, .queued_whole = 1}
        .to_json();
  });
  EXPECT_LT(limit(), 1);
}

TEST_F(CallComparisonTest, AFailureOfTheMachineIsAnError) {
  fakes_.judges.fail<worker::JudgeTimeCallsRequest>(worker::Reaction(execute::ProcessEnd{9, 0}));
  EXPECT_EQ(decided().find("error"), 0u);
  fakes_.devices.fail<Finish>(worker::Reaction(execute::ProcessEnd{9, 0}));
  EXPECT_EQ(decided().find("error"), 0u);
}

}  // namespace
}  // namespace mc::timing
