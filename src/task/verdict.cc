// SPDX-License-Identifier: Apache-2.0
#include "task/verdict.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "core/check.h"

namespace mc::task {

const char* to_string(Backend backend) {
  constexpr const char* kNames[] = {"cpu", "cuda", "musa"};  // In the order of the enumerators.
  const auto index = static_cast<size_t>(backend);
  MC_CHECK(index < std::size(kNames));
  return kNames[index];
}

const char* to_string(Dialect dialect) { return dialect == Dialect::kMusa ? "musa" : "cuda"; }

bool ends_kernel(const KernelFinding& finding) {
  constexpr std::string_view kKinds[] = {
      "out_of_bounds_read", "out_of_bounds_write", "misaligned",   "divergent_barrier",
      "deadlock",           "device_assert",       "launch_error", "step_limit"};
  return std::ranges::find(kKinds, finding.kind) != std::end(kKinds);
}

bool is_earned_by_any_constant(const Verdict& verdict) {
  if (!verdict.task_grade.is_trivial()) return false;
  if (const auto* wrong = std::get_if<Wrong>(&verdict.outcome)) return wrong->q > 0;
  if (const auto* illegal = std::get_if<Illegal>(&verdict.outcome)) {
    return std::ranges::any_of(illegal->findings, [](const RuleFinding& finding) {
      return finding.rule == kConstantAnswer;
    });
  }
  return std::holds_alternative<Passed>(verdict.outcome);
}

std::string dialect_note(const Verdict& verdict) {
  if (verdict.protocol.dialect != Dialect::kMusa) return "";
  const std::string dialect = "MUSA dialect (" + verdict.protocol.musa_architecture + ")";
  if (verdict.backend == Backend::kMusa) {
    return dialect + (verdict.protocol.device.empty()
                          ? ", compiled by mcc; no device took part"
                          : ", judged by the MUSA backend, which nobody has verified on hardware "
                            "yet (docs/musa.md)");
  }
  const char* place = verdict.backend == Backend::kCuda ? "an NVIDIA GPU" : "the CPU";
  return dialect + ", judged as its port to CUDA on " + place;
}

const std::vector<std::string>& outcome_names() {
  // The names in the order of the variant's alternatives.
  static const std::vector<std::string> kNames = {"extraction",  "illegal", "compile", "runtime",
                                                  "timeout",     "oom",     "wrong",   "pass",
                                                  "unsupported", "infra"};
  return kNames;
}

const char* outcome_name(const Outcome& outcome) {
  return outcome_names()[outcome.index()].c_str();
}

}  // namespace mc::task
