// SPDX-License-Identifier: Apache-2.0
#include "execute/device_process.h"

#include <chrono>
#include <utility>

#include "core/demangle.h"

namespace mc::execute {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr int kFailedCheckExit = 70;  // The exit code after a failed MC_CHECK (device/check.h).
constexpr double kCloseSeconds = 2;   // A kernel that runs longer is killed with the process.

// Enough for two doubles: correct answers of models read 4 bytes.  Sixteen sums of floats are known
// to suffice to compute the last step of a loss on the host.
constexpr int64_t kHostBytesOfCall = 16;

}  // namespace

std::optional<task::Outcome> forbidden_by(const worker::DeviceUsedResponse& used,
                                          int64_t bytes_before, int64_t calls) {
  if (!used.forbidden.empty()) {
    return task::Illegal{
        "run",
        {{"run.library_kernel",
          "a kernel that is not the candidate's own was launched: " + demangle(used.forbidden),
          {}}}};
  }
  const int64_t bytes = used.bytes_to_host - bytes_before;
  if (bytes <= kHostBytesOfCall * calls) return std::nullopt;
  return task::Illegal{
      "run",
      {{"run.host_transfer",
        std::to_string(bytes) + " bytes were copied from the device to the host in " +
            std::to_string(calls) + " calls; " + std::to_string(kHostBytesOfCall) +
            " a call are allowed",
        {}}}};
}

CallResult DeviceProcess::call(const std::string& request, const Fd* region,
                               std::optional<double> limit_s) {
  CallResult result = session_.call(request, region, Seconds(limit_s.value_or(limit_s_)));
  const auto* end = std::get_if<ProcessEnd>(&result);
  has_ended_ = has_ended_ || end != nullptr || std::holds_alternative<LimitExceeded>(result);
  if (end != nullptr && end->exit_code == kFailedCheckExit) {
    failed_check_ = Error{ErrorCode::kUnavailable,
                          "a check in the device process failed: " + session_.output_tail()};
  }
  return result;
}

template <typename Request>
Result<worker::Response<Request>> DeviceProcess::call(const Request& request, const Fd* region) {
  CallResult result = call(request.to_json(), region);
  if (auto* reply = std::get_if<Reply>(&result))
    return worker::parse_response<Request>(std::move(*reply));
  if (const auto* refusal = std::get_if<ErrorReply>(&result)) {
    const std::string& kind = refusal->kind;
    if (kind == "recording") return Error{ErrorCode::kInvalidInput, refusal->exception.message};
    if (kind == "unsupported") return Error{ErrorCode::kUnsupported, refusal->exception.message};
    const auto code = kind == "oom" ? ErrorCode::kExhausted : ErrorCode::kUnavailable;
    return Error{code, "the device process failed: " + refusal->exception.message};
  }
  return Error{ErrorCode::kUnavailable, "the device process ended: " + session_.output_tail()};
}

Result<Fd> DeviceProcess::open(const std::vector<std::string>& foreign_kernels,
                               const std::map<std::string, int64_t>& described, bool is_recorded) {
  report_.clear();
  MC_TRY(auto opened, call(worker::DeviceOpenRequest{foreign_kernels, described, is_recorded}),
         "open");
  return std::move(opened.region);
}

Result<CandidateRecording> DeviceProcess::recording() {
  auto recorded = call(worker::DeviceRecordingRequest{});
  if (!recorded) return recorded.error();
  return CandidateRecording{std::move(recorded->region), std::move(recorded->body.device)};
}

Result<worker::DeviceReplayResponse> DeviceProcess::replay(const Fd& data,
                                                           const task::Correctness& correctness) {
  auto replayed = call(
      worker::DeviceReplayRequest{correctness.tolerance_fp32, correctness.tolerance_half}, &data);
  if (!replayed) return replayed.error();
  return std::move(replayed->body);
}

Status DeviceProcess::allow(const std::map<std::string, std::string>& files,
                            uint64_t schedule_seed) {
  MC_TRY_VOID(call(worker::DeviceAllowRequest{files, schedule_seed}), "allow");
  return ok();
}

Result<int64_t> DeviceProcess::put(const std::vector<worker::Tree>& trees, const Fd& region) {
  MC_TRY(const auto mapped, call(worker::DevicePutRequest{trees, false}, &region), "put");
  return mapped.body.address;
}

Result<int64_t> DeviceProcess::begin_call(const worker::Tree& inputs, const Fd& region) {
  MC_TRY(const auto mapped, call(worker::DevicePutRequest{{inputs}, true}, &region), "put");
  return mapped.body.address;
}

Status DeviceProcess::release(int64_t address) {
  MC_TRY_VOID(call(worker::DeviceReleaseRequest{address}), "release");
  return ok();
}

CallResult DeviceProcess::take(const worker::Tree& outputs,
                               const std::vector<worker::NamedTree>& buffers) {
  const worker::DeviceTakeRequest request{outputs, buffers};
  return call(request.to_json());
}

Result<worker::DeviceUsedResponse> DeviceProcess::used() {
  MC_TRY(auto used, call(worker::DeviceUsedRequest{}), "used");
  report_ += used.body.report;
  return std::move(used.body);
}

Result<int64_t> DeviceProcess::prepare_batches(int64_t calls, int64_t inputs_bytes,
                                               int64_t outputs_bytes) {
  const worker::DeviceTimePrepareRequest request{calls, inputs_bytes, outputs_bytes};
  MC_TRY(const auto prepared, call(request), "prepare batches");
  return prepared.body.address;
}

Status DeviceProcess::start_batch(int64_t calls, const Fd& inputs, int64_t nbytes, bool is_gated,
                                  bool is_itemised) {
  const worker::DeviceTimeStartRequest request{calls, nbytes, is_gated, is_itemised};
  MC_TRY_VOID(call(request, &inputs), "batch");
  return ok();
}

CallResult DeviceProcess::finish_batch(double limit_s) {
  return call(worker::DeviceTimeFinishRequest().to_json(), nullptr, limit_s);
}

CallResult DeviceProcess::take_call(int64_t index, const worker::Tree& outputs) {
  const worker::DeviceTimeTakeRequest request{index, outputs};
  return call(request.to_json());
}

bool DeviceProcess::close() {
  if (has_ended_) return false;
  limit_s_ = kCloseSeconds;
  const auto closed = call(worker::DeviceCloseRequest{});
  return closed && closed->body.is_clean;
}

}  // namespace mc::execute
