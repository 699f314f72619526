// SPDX-License-Identifier: Apache-2.0
#include "eval/machine.h"

#include <algorithm>

#include "compile/artifact_store.h"
#include "compile/cpu_toolchain.h"
#include "compile/cuda_libraries.h"
#include "compile/cuda_runtime.h"
#include "compile/cuda_toolchain.h"
#include "core/file.h"
#include "execute/cuda_driver.h"

namespace mc::eval {
namespace {

namespace fs = std::filesystem;

// A GPU computes native shapes; what does not fit into its memory is for the driver to refuse.
constexpr double kCudaCostMax = 1e16;
constexpr int64_t kCudaBytesMax = int64_t{24} << 30;

// The first GPU that CUDA_VISIBLE_DEVICES leaves, without touching it from this process.
Result<execute::CudaDevice> first_gpu() {
  MC_TRY(const execute::CudaDriver driver, execute::ask_cuda_driver(),
         "no GPU answers (--backend cpu needs none)");
  return driver.devices[0];
}

// "90".
std::string architecture_of(const execute::CudaDevice& gpu) {
  return std::to_string(gpu.major) + std::to_string(gpu.minor);
}

std::vector<std::string> nvidia_devices() {
  std::vector<std::string> nodes;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator("/dev", failure)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("nvidia") && entry.is_character_file(failure)) {
      nodes.push_back(entry.path().string());
    }
  }
  std::ranges::sort(nodes);
  return nodes;
}

Status find_cpu(Machine& machine, bool full_headers, const Progress& progress) {
  MC_TRY(machine.cpu, compile::prepare_cpu_runtime(machine.pytorch, machine.layout, progress),
         "set-up");
  if (full_headers) machine.cpu->leave_facade();
  MC_TRY(const uint64_t bytes_max, compile::artifact_bytes_max(), "set-up");
  machine.toolchain = std::make_unique<compile::CpuToolchain>(
      *machine.cpu, cache_directory() / "artifacts", bytes_max);
  return ok();
}

Status find_gpu(Machine& machine) {
  MC_TRY(const execute::CudaDevice gpu, first_gpu(), "set-up");
  machine.architecture = architecture_of(gpu);
  machine.gpu = gpu.uuid;
  machine.gpu_bytes = gpu.bytes;
  machine.devices = nvidia_devices();
  return ok();
}

Status find_cuda(Machine& machine, const Options& options, const Progress& progress) {
  machine.architecture = options.architecture;
  if (options.architecture.empty()) MC_TRY_VOID(find_gpu(machine), "set-up");
  MC_TRY(compile::CudaRuntime runtime,
         compile::find_cuda_runtime(machine.pytorch, machine.architecture), "set-up");
  if (!options.full_headers) {
    MC_TRY_VOID(compile::add_facade(runtime, machine.pytorch, machine.layout, progress), "set-up");
  }
  MC_TRY(const compile::CudaLibraries libraries,
         compile::prepare_cuda_libraries(machine.pytorch, runtime.root, machine.layout, progress),
         "set-up");
  machine.aten_lib = libraries.aten;
  machine.device_lib = libraries.device;
  machine.sanitizer = compile::find_sanitizer(runtime.root);
  MC_TRY(const uint64_t bytes_max, compile::artifact_bytes_max(), "set-up");
  machine.toolchain = std::make_unique<compile::CudaToolchain>(
      std::move(runtime), cache_directory() / "artifacts", bytes_max);
  return ok();
}

Result<compile::PyTorch> pytorch_of(const fs::path& python) {
  return compile::find_pytorch(python.empty() ? compile::default_python() : python);
}

}  // namespace

Result<Machine> find_machine(const Options& options, const Progress& progress) {
  Machine machine;
  machine.backend = options.backend;
  MC_TRY(machine.layout, find_layout(), "set-up");
  MC_TRY(machine.pytorch, pytorch_of(options.python), "set-up");
  const bool is_cuda = options.backend == task::Backend::kCuda;
  MC_TRY_VOID(is_cuda ? find_cuda(machine, options, progress)
                      : find_cpu(machine, options.full_headers, progress),
              "set-up");
  return machine;
}

execute::JudgeOptions judge_options(const Options& options) {
  const Correctness& wanted = options.correctness;
  execute::JudgeOptions judge{wanted.trials,          wanted.distributions,  wanted.shapes,
                              wanted.require_general, wanted.tolerance_fp32, wanted.tolerance_half};
  if (options.backend == task::Backend::kCuda) {
    judge.cost_max = kCudaCostMax;
    judge.bytes_max = kCudaBytesMax;
  }
  return judge;
}

execute::ZygoteOptions zygote_options(const Machine& machine, execute::Roles roles) {
  execute::ZygoteOptions options;
  options.roles = roles;
  options.python = machine.pytorch.python;
  options.harness = machine.layout.share("harness");
  options.sandbox_lib = machine.layout.library("libmc_sandbox.so");
  options.backend = machine.backend;
  options.aten_lib = machine.aten_lib;
  options.device_lib = machine.device_lib;
  if (machine.cpu) {
    options.emulator = machine.cpu->emulator;
    options.shim = machine.cpu->shim;
  }
  return options;
}

task::Backend best_backend(const fs::path& python) {
  if (nvidia_devices().empty()) return task::Backend::kCpu;
  const auto gpu = first_gpu();
  const auto pytorch = pytorch_of(python);
  if (!gpu || !pytorch) return task::Backend::kCpu;
  const bool compiles = compile::find_cuda_runtime(*pytorch, architecture_of(*gpu)).has_value();
  return compiles ? task::Backend::kCuda : task::Backend::kCpu;
}

}  // namespace mc::eval
