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

std::optional<task::Outcome> forbidden_by(const worker::DeviceUsedAnswer& used,
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

Answer DeviceProcess::ask(const std::string& question, const Fd* region,
                          std::optional<double> limit_s) {
  Answer answer = session_.ask(question, region, Seconds(limit_s.value_or(limit_s_)));
  const auto* end = std::get_if<ProcessEnd>(&answer);
  has_ended_ = has_ended_ || end != nullptr || std::holds_alternative<LimitExceeded>(answer);
  if (end != nullptr && end->exit_code == kFailedCheckExit) {
    failed_check_ = Error{ErrorCode::kUnavailable,
                          "a check in the device process failed: " + session_.output_tail()};
  }
  return answer;
}

template <typename Question>
Result<worker::Response<Question>> DeviceProcess::call(const Question& question, const Fd* region) {
  Answer answer = ask(question.to_json(), region);
  if (auto* reply = std::get_if<Reply>(&answer))
    return worker::parse_response<Question>(std::move(*reply));
  if (const auto* refusal = std::get_if<ErrorReply>(&answer)) {
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
  MC_TRY(auto opened, call(worker::DeviceOpenQuestion{foreign_kernels, described, is_recorded}),
         "open");
  return std::move(opened.region);
}

Result<CandidateRecording> DeviceProcess::recording() {
  auto recorded = call(worker::DeviceRecordingQuestion{});
  if (!recorded) return recorded.error();
  return CandidateRecording{std::move(recorded->region), std::move(recorded->body.device)};
}

Result<worker::DeviceReplayAnswer> DeviceProcess::replay(const Fd& data,
                                                         const task::Correctness& correctness) {
  auto replayed = call(
      worker::DeviceReplayQuestion{correctness.tolerance_fp32, correctness.tolerance_half}, &data);
  if (!replayed) return replayed.error();
  return std::move(replayed->body);
}

Status DeviceProcess::allow(const std::map<std::string, std::string>& files,
                            uint64_t schedule_seed) {
  MC_TRY_VOID(call(worker::DeviceAllowQuestion{files, schedule_seed}), "allow");
  return ok();
}

Result<int64_t> DeviceProcess::put(const std::vector<worker::Tree>& trees, const Fd& region) {
  MC_TRY(const auto mapped, call(worker::DevicePutQuestion{trees, false}, &region), "put");
  return mapped.body.address;
}

Result<int64_t> DeviceProcess::begin_call(const worker::Tree& inputs, const Fd& region) {
  MC_TRY(const auto mapped, call(worker::DevicePutQuestion{{inputs}, true}, &region), "put");
  return mapped.body.address;
}

Status DeviceProcess::release(int64_t address) {
  MC_TRY_VOID(call(worker::DeviceReleaseQuestion{address}), "release");
  return ok();
}

Answer DeviceProcess::take(const worker::Tree& outputs,
                           const std::vector<worker::NamedTree>& buffers) {
  const worker::DeviceTakeQuestion question{outputs, buffers};
  return ask(question.to_json());
}

Result<worker::DeviceUsedAnswer> DeviceProcess::used() {
  MC_TRY(auto used, call(worker::DeviceUsedQuestion{}), "used");
  report_ += used.body.report;
  return std::move(used.body);
}

Result<int64_t> DeviceProcess::prepare_batches(int64_t calls, int64_t inputs_bytes,
                                               int64_t outputs_bytes) {
  const worker::DeviceTimePrepareQuestion question{calls, inputs_bytes, outputs_bytes};
  MC_TRY(const auto prepared, call(question), "prepare batches");
  return prepared.body.address;
}

Status DeviceProcess::start_batch(int64_t calls, const Fd& inputs, int64_t nbytes, bool is_gated,
                                  bool is_itemised) {
  const worker::DeviceTimeStartQuestion question{calls, nbytes, is_gated, is_itemised};
  MC_TRY_VOID(call(question, &inputs), "batch");
  return ok();
}

Answer DeviceProcess::finish_batch(double limit_s) {
  return ask(worker::DeviceTimeFinishQuestion().to_json(), nullptr, limit_s);
}

Answer DeviceProcess::take_call(int64_t call, const worker::Tree& outputs) {
  const worker::DeviceTimeTakeQuestion question{call, outputs};
  return ask(question.to_json());
}

bool DeviceProcess::close() {
  if (has_ended_) return false;
  limit_s_ = kCloseSeconds;
  const auto closed = call(worker::DeviceCloseQuestion{});
  return closed && closed->body.is_clean;
}

}  // namespace mc::execute
