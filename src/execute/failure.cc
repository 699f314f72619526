// SPDX-License-Identifier: Apache-2.0
#include "execute/failure.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/check.h"
#include "core/demangle.h"

namespace mc::execute {
namespace {

constexpr size_t kSymbolBytesMax = 4096;
constexpr size_t kMessageBytesMax = 1000;

task::Crashed crashed_with(const Failure& failure, task::Exception exception) {
  return {failure.stage, std::move(exception), 0, 0, failure.findings, {}};
}

// The linker accepts symbols that libraries of the process may define; loading finds those that
// none defines.
task::Outcome unlinked(const task::Exception& exception) {
  const std::string name = demangle(exception.message.substr(0, kSymbolBytesMax));
  const std::string message = fmt::format("undefined reference to {}: nothing defines it", name);
  return task::CompileFailed{{{"error", message, exception.location}}};
}

// Triton kernels are compiled when they are called.
task::Outcome uncompiled(const task::Exception& exception) {
  return task::CompileFailed{
      {{"error", exception.message.substr(0, kMessageBytesMax), exception.location}}};
}

// A name that a candidate may not use does not exist at run time (docs/legality.md).
task::Outcome illegal(const char* rule, const task::Exception& exception) {
  return task::Illegal{"run",
                       {{rule, exception.message.substr(0, kMessageBytesMax), exception.location}}};
}

}  // namespace

std::optional<task::Outcome> unsupported_in(const std::vector<task::KernelFinding>& findings) {
  task::Unsupported lacking;
  for (const task::KernelFinding& finding : findings) {
    if (finding.kind != "unsupported") continue;
    lacking.constructs.push_back({"cpu.unsupported", finding.detail, finding.location});
  }
  if (lacking.constructs.empty()) return std::nullopt;
  return lacking;
}

task::Outcome Failure::operator()(const Reply&) const {
  MC_CHECK(false);
  return task::Infra{};
}

task::Outcome Failure::operator()(const ErrorReply& refusal) const {
  if (refusal.kind == "oom") return task::OutOfMemory{stage, limits.child.memory_bytes};
  if (refusal.kind == "link") return unlinked(refusal.exception);
  if (refusal.kind == "compile") return uncompiled(refusal.exception);
  if (refusal.kind == "operator") return illegal("run.aten", refusal.exception);
  const auto is_endless = [](const auto& finding) { return finding.kind == "step_limit"; };
  if (std::ranges::any_of(findings, is_endless)) {
    return task::TimedOut{stage, 0, findings};  // A step limit ended the kernel, not a clock.
  }
  // The outcome is not "unsupported": otherwise a candidate could avoid every score by reporting
  // this of itself.
  task::Crashed crashed = crashed_with(*this, refusal.exception);
  if (!refusal.stage.empty()) crashed.stage = refusal.stage;
  return crashed;
}

// A device in software that lacks a feature of a kernel has reported it as a finding.
task::Outcome Failure::operator()(const ProcessEnd& death) const {
  if (auto lacking = unsupported_in(findings)) return std::move(*lacking);
  return task::Crashed{stage, std::nullopt, death.signal, death.exit_code, findings, {}};
}

task::Outcome Failure::operator()(const LimitExceeded& overrun) const {
  switch (overrun.limit) {
    case Limit::kMemory:
      return task::OutOfMemory{stage, limits.child.memory_bytes};
    case Limit::kThreads:
      return crashed_with(*this, {"ThreadLimit", "more threads or processes than allowed", {}, {}});
    case Limit::kAllCalls:
      return task::TimedOut{"all_calls", limits.candidate_s, findings};
    case Limit::kWall:
    case Limit::kCpu:
      break;
  }
  return task::TimedOut{stage, limit_s, findings};
}

task::Outcome Failure::operator()(const MalformedReply& garbled) const {
  return crashed_with(*this, {"ProtocolError", garbled.why, {}, {}});
}

}  // namespace mc::execute
