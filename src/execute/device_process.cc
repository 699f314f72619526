// SPDX-License-Identifier: Apache-2.0
#include "execute/device_process.h"

#include <chrono>
#include <utility>

namespace mc::execute {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr double kCloseSeconds = 2;  // A kernel that runs longer ends with the process.

}  // namespace

template <typename Question>
Result<worker::Told<Question>> DeviceProcess::call(const Question& question, const Fd* region) {
  Answer answer = session_.ask(question.to_json(), region, Seconds(limit_s_));
  if (auto* reply = std::get_if<Reply>(&answer)) return worker::told<Question>(std::move(*reply));
  if (const auto* refusal = std::get_if<Refusal>(&answer)) {
    const auto code = refusal->kind == "oom" ? ErrorCode::kExhausted : ErrorCode::kUnavailable;
    return Error{code, "the device process failed: " + refusal->exception.message};
  }
  return Error{ErrorCode::kUnavailable, "the device process ended: " + session_.output_tail()};
}

Result<Fd> DeviceProcess::open(const std::vector<std::string>& foreign_kernels) {
  MC_TRY(auto opened, call(worker::DeviceOpenQuestion{foreign_kernels}), "open");
  return std::move(opened.region);
}

Status DeviceProcess::allow(const std::map<std::string, std::string>& files) {
  MC_TRY_VOID(call(worker::DeviceAllowQuestion{files}), "allow");
  return ok();
}

Result<int64_t> DeviceProcess::put(const std::vector<worker::Tree>& trees, const Fd& region) {
  MC_TRY(const auto mapped, call(worker::DevicePutQuestion{trees}, &region), "put");
  return mapped.said.address;
}

Status DeviceProcess::release(int64_t address) {
  MC_TRY_VOID(call(worker::DeviceReleaseQuestion{address}), "release");
  return ok();
}

Answer DeviceProcess::take(const worker::Tree& outputs,
                           const std::vector<worker::NamedTree>& buffers) {
  const worker::DeviceTakeQuestion question{outputs, buffers};
  return session_.ask(question.to_json(), nullptr, Seconds(limit_s_));
}

Result<worker::DeviceUsedAnswer> DeviceProcess::used() {
  MC_TRY(auto used, call(worker::DeviceUsedQuestion{}), "used");
  return std::move(used.said);
}

bool DeviceProcess::close() {
  limit_s_ = kCloseSeconds;
  const auto closed = call(worker::DeviceCloseQuestion{});
  return closed && closed->said.is_clean;
}

}  // namespace mc::execute
