// SPDX-License-Identifier: Apache-2.0
#include "timing/fakes/timed_fakes.h"

#include <algorithm>

namespace mc::timing {
namespace {

using worker::BaselineTimeCallsQuestion;
using worker::CandidateTimeCallsThereQuestion;
using worker::DeviceTimeFinishQuestion;
using worker::DeviceTimeStartQuestion;

}  // namespace

TimedFakes::TimedFakes() {
  const auto pass = [this](double us, int64_t count) {
    time.pass(Clock::Seconds(us * 1e-6 * static_cast<double>(count)));
  };
  judges.on<worker::JudgeTimePlanQuestion>([this](const auto&, const Fd&) { return plan; });
  judges.on<worker::JudgeTimeShareQuestion>([this](const auto& asked, const Fd&) {
    room.push_back(asked.calls);
    return worker::JudgeTimeShareAnswer{
        .inputs = {R"({"t":"tensor"})"}, .stride = 512, .nbytes = 1 << 21};
  });
  judges.on<worker::JudgeTimeGenerateInputsQuestion>([this](const auto& asked, const Fd&) {
    drawn.push_back(asked.number);
    return worker::JudgeTimeGenerateInputsAnswer{};
  });
  judges.say<worker::JudgeRestQuestion>({});
  judges.on<worker::JudgeTimeSpeedQuestion>([this](const auto&, const Fd&) {
    ++num_speeds;
    return worker::JudgeTimeSpeedAnswer{
        .bandwidth_gbs = 3000, .fp32_tflops = 50, .half_tflops = 700};
  });
  judges.on<worker::JudgeTimeCheckQuestion>([this](const auto& asked, const Fd&) {
    checked.push_back(asked.call);
    drawn_when_checked.push_back(drawn.back());
    return worker::JudgeTimeCheckAnswer{problem};
  });
  devices.say<worker::DeviceTimePrepareQuestion>({.address = 4096});
  devices.on<DeviceTimeStartQuestion>([this](const auto& asked, const Fd&) {
    calls.push_back(asked.calls);
    gated.push_back(asked.is_gated);
    itemised.push_back(asked.is_itemised);
    return worker::DeviceTimeStartAnswer{};
  });
  devices.on<DeviceTimeFinishQuestion>([this, pass](const auto&, const Fd&) {
    const int64_t count = calls.back();
    pass(own_us, count);
    worker::DeviceTimeFinishAnswer answer;
    answer.us.assign(static_cast<size_t>(count), own_us);
    answer.host_us = host_us;
    answer.launches_own.assign(static_cast<size_t>(count), launches_own);
    answer.queued_whole = gated.back() ? std::min(count, queued_whole) : 0;
    answer.long_calls = long_calls;
    if (itemised.back()) answer.kernels = kernels;
    answer.memory_bytes = memory_bytes;
    return answer;
  });
  devices.say<worker::DeviceTimeTakeQuestion>({.outputs = {R"(["here"])"}});
  devices.say<worker::DeviceUsedQuestion>({});
  candidates.say<CandidateTimeCallsThereQuestion>({.outputs = {R"(["there"])"}});
  judges.on<worker::JudgeTimeCallsQuestion>([this, pass](const auto& asked, const Fd&) {
    baseline_gated.push_back(asked.is_gated);
    pass(eager_us, asked.calls);
    return worker::JudgeTimeCallsAnswer{
        .us = std::vector<double>(static_cast<size_t>(asked.calls), eager_us),
        .queued_whole = asked.is_gated ? asked.calls : 0};
  });
  judges.say<worker::JudgeTimeMemoryQuestion>({.memory_bytes = 2 * memory_bytes});
  compiled.on<BaselineTimeCallsQuestion>([this, pass](const auto& asked, const Fd&) {
    pass(compiled_us, asked.calls);
    return worker::BaselineTimeCallsAnswer{
        .us = std::vector<double>(static_cast<size_t>(asked.calls), compiled_us),
        .queued_whole = asked.is_gated ? asked.calls : 0};
  });
}

}  // namespace mc::timing
