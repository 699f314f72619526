// SPDX-License-Identifier: Apache-2.0
#include "timing/fakes/timed_fakes.h"

#include <algorithm>

namespace mc::timing {
namespace {

using worker::BaselineTimeCallsRequest;
using worker::CandidateTimeCallsThereRequest;
using worker::DeviceTimeFinishRequest;
using worker::DeviceTimeStartRequest;

}  // namespace

TimedFakes::TimedFakes() {
  const auto pass = [this](double us, int64_t count) {
    time.pass(Clock::Seconds(us * 1e-6 * static_cast<double>(count)));
  };
  judges.on<worker::JudgeTimePlanRequest>([this](const auto&, const Fd&) { return plan; });
  judges.on<worker::JudgeTimeShareRequest>([this](const auto& asked, const Fd&) {
    room.push_back(asked.calls);
    return worker::JudgeTimeShareResponse{
        .inputs = {R"({"t":"tensor"})"}, .stride = 512, .nbytes = 1 << 21};
  });
  judges.on<worker::JudgeTimeGenerateInputsRequest>([this](const auto& asked, const Fd&) {
    generated.push_back(asked.number);
    return worker::JudgeTimeGenerateInputsResponse{};
  });
  judges.say<worker::JudgeRestRequest>({});
  judges.on<worker::JudgeTimeSpeedRequest>([this](const auto&, const Fd&) {
    ++num_speeds;
    return worker::JudgeTimeSpeedResponse{
        .bandwidth_gbs = 3000, .fp32_tflops = 50, .half_tflops = 700};
  });
  judges.on<worker::JudgeTimeCheckRequest>([this](const auto& asked, const Fd&) {
    checked.push_back(asked.call);
    drawn_when_checked.push_back(generated.back());
    return worker::JudgeTimeCheckResponse{problem};
  });
  devices.say<worker::DeviceTimePrepareRequest>({.address = 4096});
  devices.on<DeviceTimeStartRequest>([this](const auto& asked, const Fd&) {
    calls.push_back(asked.calls);
    gated.push_back(asked.is_gated);
    itemised.push_back(asked.is_itemised);
    return worker::DeviceTimeStartResponse{};
  });
  devices.on<DeviceTimeFinishRequest>([this, pass](const auto&, const Fd&) {
    const int64_t count = calls.back();
    pass(own_us, count);
    worker::DeviceTimeFinishResponse result;
    result.us.assign(static_cast<size_t>(count), own_us);
    result.host_us = host_us;
    result.launches_own.assign(static_cast<size_t>(count), launches_own);
    result.queued_whole = gated.back() ? std::min(count, queued_whole) : 0;
    result.long_calls = long_calls;
    if (itemised.back()) result.kernels = kernels;
    result.memory_bytes = memory_bytes;
    return result;
  });
  devices.say<worker::DeviceTimeTakeRequest>({.outputs = {R"(["here"])"}});
  devices.say<worker::DeviceUsedRequest>({});
  candidates.say<CandidateTimeCallsThereRequest>({.outputs = {R"(["there"])"}});
  judges.on<worker::JudgeTimeCallsRequest>([this, pass](const auto& asked, const Fd&) {
    baseline_gated.push_back(asked.is_gated);
    pass(eager_us, asked.calls);
    return worker::JudgeTimeCallsResponse{
        .us = std::vector<double>(static_cast<size_t>(asked.calls), eager_us),
        .queued_whole = asked.is_gated ? asked.calls : 0};
  });
  judges.say<worker::JudgeTimeMemoryRequest>({.memory_bytes = 2 * memory_bytes});
  compiled.on<BaselineTimeCallsRequest>([this, pass](const auto& asked, const Fd&) {
    pass(compiled_us, asked.calls);
    return worker::BaselineTimeCallsResponse{
        .us = std::vector<double>(static_cast<size_t>(asked.calls), compiled_us),
        .queued_whole = asked.is_gated ? asked.calls : 0};
  });
}

}  // namespace mc::timing
