// SPDX-License-Identifier: Apache-2.0
#include "service/verifier.h"

#include "core/cancel.h"
#include "core/check.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/layout.h"
#include "eval/prepared.h"

namespace mc::service {
namespace {

constexpr size_t kTasksRemembered = 100'000;

}  // namespace

Result<eval::Preparation> PipelineVerifier::run(const Request& request) {
  MC_CHECK(request.verb <= Verb::kMeasure);
  if (pipeline_.only_prepares() && request.verb != Verb::kPrepare) {
    return Error{ErrorCode::kInvalidInput, "this program only prepares (--architecture)"};
  }
  if (request.verb == Verb::kMeasure) {
    MC_TRY(const eval::PreparedCandidate prepared,
           eval::prepared_from_bytes(request.prepared, cache_directory() / "prepared"), "prepared");
    MC_TRY_VOID(pipeline_.can_measure(prepared), "prepared");
    return eval::Preparation(pipeline_.measure(prepared, request.correctness));
  }
  if (request.dialect) MC_TRY_VOID(pipeline_.can_judge(*request.dialect), "dialect");
  if (const auto fault = fault_of(request.task)) return Error{ErrorCode::kInvalidInput, *fault};
  if (request.verb == Verb::kPrepare) {
    return pipeline_.prepare(request.task, request.candidate, request.correctness, request.dialect);
  }
  return eval::Preparation(
      pipeline_.evaluate(request.task, request.candidate, request.correctness, request.dialect));
}

std::optional<std::string> PipelineVerifier::fault_of(const task::Task& task) {
  const std::string key = content_hash({task.code});
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = seen_.find(key); found != seen_.end()) return found->second;
  }
  const Status status = pipeline_.check_task(task);
  // A failure of the machine is no evidence about the task, and will appear in the verdict.
  if (is_cancelled()) return std::nullopt;
  if (!status && status.error().code != ErrorCode::kInvalidInput) return std::nullopt;
  const auto fault = status ? std::nullopt : std::optional(status.error().message);
  const std::lock_guard lock(mutex_);
  if (seen_.size() >= kTasksRemembered) seen_.clear();
  seen_[key] = fault;
  return fault;
}

}  // namespace mc::service
