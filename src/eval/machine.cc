// SPDX-License-Identifier: Apache-2.0
#include "eval/machine.h"

#include <algorithm>
#include <iterator>

#include "core/check.h"
#include "core/file.h"

namespace mc::eval {

std::span<const Backend* const> backends() {
  static constexpr const Backend* kBackends[] = {&kCudaBackend, &kMusaBackend, &kCpuBackend};
  return kBackends;
}

const Backend& backend_of(task::Backend name) {
  const auto found = std::ranges::find(backends(), name, &Backend::name);
  MC_CHECK(found != backends().end());
  return **found;
}

namespace {

Result<compile::PyTorch> pytorch_of(const std::filesystem::path& python) {
  return compile::find_pytorch(python.empty() ? compile::default_python() : python);
}

}  // namespace

Result<Machine> find_machine(const Options& options, const Progress& progress) {
  Machine machine;
  machine.backend = options.backend;
  if (const Status cache = prepare_cache_directory(); !cache) return cache.error();
  MC_TRY(machine.layout, find_layout(), "set-up");
  MC_TRY(machine.pytorch, pytorch_of(options.python), "set-up");
  MC_TRY_VOID(backend_of(options.backend).set_up(machine, options, progress), "set-up");
  MC_CHECK(machine.toolchain != nullptr);
  return machine;
}

execute::JudgeOptions judge_options(const task::Correctness& correctness, const Machine& machine) {
  return {correctness, machine.cost_max, machine.bytes_max};
}

task::Protocol protocol_of(const Options& options, const Machine& machine,
                           const std::string& policy, const task::Correctness& correctness) {
  task::Protocol protocol{.policy = policy, .correctness = correctness, .strict = options.strict};
  protocol.dialect = options.dialect;
  if (options.dialect == task::Dialect::kMusa) {
    protocol.musa_architecture = options.musa_architecture;
  }
  if (!machine.device) return protocol;
  protocol.device = machine.device->id;
  if (!options.timing.enabled) return protocol;
  protocol.timing = options.timing.is_quick ? "quick" : "full";
  protocol.baseline = options.timing.baseline;
  protocol.compile_mode = options.timing.compile_mode;
  protocol.tf32 = options.timing.tf32;
  return protocol;
}

execute::ZygoteOptions zygote_options(const Machine& machine, execute::Roles roles) {
  execute::ZygoteOptions options;
  options.roles = roles;
  options.python = machine.pytorch.python;
  options.harness = machine.layout.share("harness");
  options.sandbox_lib = machine.layout.library("libmc_sandbox.so");
  options.arguments = {"--device", task::to_string(machine.backend)};
  std::ranges::copy(machine.arguments, std::back_inserter(options.arguments));
  if (roles == execute::Roles::kCandidates) {
    std::ranges::copy(machine.candidates_arguments, std::back_inserter(options.arguments));
  }
  options.environment = machine.environment;
  if (roles == execute::Roles::kCandidates) {
    std::ranges::copy(machine.candidates_environment, std::back_inserter(options.environment));
  }
  return options;
}

task::Backend best_backend(const std::filesystem::path& python) {
  const auto pytorch = pytorch_of(python);
  if (!pytorch) return kCpuBackend.name;
  const auto best = std::ranges::find_if(
      backends(), [&](const Backend* backend) { return backend->is_here(*pytorch); });
  MC_CHECK(best != backends().end());  // The CPU's is everywhere.
  return (*best)->name;
}

std::optional<task::Backend> backend_named(std::string_view name) {
  for (const Backend* backend : backends()) {
    const bool is_its_device = backend->knows_architecture(name);
    if (is_its_device || task::to_string(backend->name) == name) return backend->name;
  }
  return std::nullopt;
}

std::string backend_names() {
  std::string names = "auto";
  for (const Backend* backend : backends()) names += std::string(", ") + to_string(backend->name);
  return names;
}

}  // namespace mc::eval
