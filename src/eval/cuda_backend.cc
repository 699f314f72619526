// SPDX-License-Identifier: Apache-2.0
//
// The CUDA backend: nvcc, and the NVIDIA GPUs that this process is shown.
#include <optional>
#include <string>

#include "compile/cuda_libraries.h"
#include "compile/cuda_runtime.h"
#include "eval/cuda_facts.h"
#include "eval/machine.h"
#include "execute/cuda_driver.h"
#include "task/musa_device.h"
#include "timing/nvml.h"

namespace mc::eval {
namespace {

// The GPUs that CUDA_VISIBLE_DEVICES leaves, at least one.  No context is created in this process.
Result<std::vector<execute::CudaDevice>> visible_gpus() {
  MC_TRY(execute::CudaDriver driver, execute::query_cuda_driver(),
         "no GPU answers (--backend cpu needs none, nor does prepare --architecture 90)");
  return std::move(driver.devices);
}

Result<execute::CudaDevice> first_gpu() {
  MC_TRY(const auto gpus, visible_gpus(), "GPU");
  return gpus.front();
}

// "90".
std::string architecture_of(const execute::CudaDevice& gpu) {
  return std::to_string(gpu.major) + std::to_string(gpu.minor);
}

std::vector<std::string> nvidia_nodes() { return device_nodes("/dev", "nvidia"); }

// Each of several GPUs is identified to its processes by its id, because its number differs in a
// process that sees one device node alone.  A single GPU, which may be a MIG instance, keeps its
// name.
Device device_of(const execute::CudaDevice& gpu, size_t num_visible) {
  Device device{gpu.uuid, gpu.bytes, nvidia_nodes(), execute::environment_of_one_device()};
  if (num_visible == 1) return device;
  device.environment = {"CUDA_VISIBLE_DEVICES=" + gpu.uuid};
  const auto nvml = timing::Nvml::open(gpu.uuid);
  const auto minor_number = nvml == nullptr ? std::nullopt : nvml->minor_number();
  if (minor_number) device.nodes = execute::nodes_of_one_device(device.nodes, *minor_number);
  return device;
}

bool is_here(const compile::PyTorch& pytorch) {
  if (nvidia_nodes().empty()) return false;
  const auto gpu = first_gpu();
  return gpu && compile::find_cuda_runtime(pytorch, architecture_of(*gpu)).has_value();
}

// Makes candidate processes those of the CPU backend: operators are commands, and each tensor is an
// allocation.  Tasks are judged at that backend's sizes, too.
Status make_portable(Machine& machine, const compile::CudaRuntime& runtime,
                     const Progress& progress) {
  MC_TRY(const compile::PtxLibraries libraries,
         compile::prepare_ptx_libraries(machine.pytorch, runtime, machine.layout, progress),
         "set-up");
  machine.arguments.insert(machine.arguments.end(),
                           {"--operators-lib", libraries.operators.string()});
  machine.candidates_arguments.insert(machine.candidates_arguments.end(),
                                      {"--device", to_string(task::Backend::kCpu)});
  machine.candidates_environment.push_back("PYTORCH_NO_CUDA_MEMORY_CACHING=1");
  return ok();
}

Status set_up(Machine& machine, const Options& options, const Progress& progress) {
  if (task::warp_threads(options.dialect, options.musa_architecture) != 32) {
    return Error{ErrorCode::kInvalidInput,
                 "--musa-arch " + options.musa_architecture +
                     ": its warps have 128 threads, which NVIDIA's have not; add --backend cpu"};
  }
  machine.architecture = options.architecture;
  if (options.architecture.empty()) {
    MC_TRY(const auto visible, visible_gpus(), "set-up");
    MC_TRY(const auto chosen, chosen_devices(options.devices, visible), "set-up");
    machine.architecture = architecture_of(chosen.front());
    for (const execute::CudaDevice& gpu : chosen) {
      machine.devices.push_back(device_of(gpu, visible.size()));
    }
  }
  const auto code = options.is_portable ? compile::CodeKind::kPtx : compile::CodeKind::kMachine;
  MC_TRY(compile::CudaRuntime runtime,
         compile::find_cuda_runtime(machine.pytorch, machine.architecture, code), "set-up");
  if (!options.full_headers) {
    MC_TRY_VOID(compile::add_facade(runtime, machine.pytorch, machine.layout, progress), "set-up");
  }
  MC_TRY(const compile::CudaLibraries libraries,
         compile::prepare_cuda_libraries(machine.pytorch, runtime, machine.layout, progress),
         "set-up");
  machine.race_checker = task::Backend::kCpu;
  machine.languages = {"triton"};
  machine.environment = execute::environment_of_one_device();
  machine.arguments = {"--executor-lib", libraries.executor.string()};
  machine.aten = libraries.aten;
  machine.candidates_arguments = {"--aten-lib", libraries.aten.string()};
  if (!machine.devices.empty()) add_cuda_client(machine, libraries.client);
  machine.sanitizer = compile::find_sanitizer(runtime.root);
  if (options.is_portable) {
    MC_TRY_VOID(make_portable(machine, runtime, progress), "set-up");
  } else {
    machine.cost_max = kNativeCostMax;
    machine.bytes_max = kNativeBytesMax;
  }
  return set_toolchain(machine, std::move(runtime));
}

bool is_compute_capability(std::string_view name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
}

Result<std::optional<execute::CudaDevice>> device() {
  MC_TRY(execute::CudaDevice gpu, first_gpu(), "device");
  return std::optional(std::move(gpu));
}

std::vector<Fact> look(const compile::PyTorch* pytorch) { return gpu_facts(look_for_gpu(pytorch)); }

}  // namespace

const Backend kCudaBackend{
    task::Backend::kCuda,  is_here, set_up, "judges and times on all devices that it sees",
    is_compute_capability, look,    device};

}  // namespace mc::eval
