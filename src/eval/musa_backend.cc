// SPDX-License-Identifier: Apache-2.0
//
// The MUSA backend: mcc, torch_musa and the first Moore Threads GPU that is visible to this
// process.
//
// Nothing of it has run on such hardware: docs/musa.md lists what to check first.
#include <algorithm>
#include <cstdlib>

#include "compile/musa_runtime.h"
#include "eval/machine.h"
#include "eval/musa_facts.h"
#include "execute/cuda_driver.h"

namespace mc::eval {
namespace {

// False: a backend that was never run on hardware is used only on explicit request.
bool is_here(const compile::PyTorch&) { return false; }

bool is_architecture(std::string_view name) {
  const std::vector<std::string> known = musify::architectures();
  return std::ranges::find(known, name) != known.end();
}

Status check_options(const Options& options) {
  if (options.dialect != task::Dialect::kMusa) {
    return Error{ErrorCode::kInvalidInput,
                 "--backend musa judges MUSA's dialect: add --dialect musa"};
  }
  if (!options.architecture.empty() && options.architecture != options.musa_architecture) {
    return Error{ErrorCode::kInvalidInput, "--architecture " + options.architecture +
                                               ": add --musa-arch " + options.architecture};
  }
  return ok();
}

Status find_device(Machine& machine, const Options& options) {
  if (options.devices != kAllDevices) {
    return Error{ErrorCode::kInvalidInput,
                 "--devices: --backend musa uses the first one; set MUSA_VISIBLE_DEVICES"};
  }
  MC_TRY(const execute::CudaDriver driver,
         execute::query_cuda_driver(kMusaDriver, execute::kCudaDriverTimeMax, "mu"),
         "no MUSA device answers (prepare --architecture mp_31 needs none)");
  const execute::CudaDevice& gpu = driver.devices[0];
  const std::string name = "mp_" + std::to_string(gpu.major) + std::to_string(gpu.minor);
  if (name != machine.architecture) {
    return Error{ErrorCode::kInvalidInput,
                 "the device is " + name + ", not " + machine.architecture + ": give --musa-arch"};
  }
  machine.devices = {Device{gpu.uuid, gpu.bytes, musa_nodes(), machine.environment}};
  return ok();
}

// Replaces the runtime and the driver of candidate processes by the client.
void add_client(Machine& machine, const compile::MusaLibraries& libraries) {
  std::string path = "LD_LIBRARY_PATH=" + libraries.client.parent_path().string();
  if (const char* given = std::getenv("LD_LIBRARY_PATH")) path += std::string(":") + given;
  std::string preload = "LD_PRELOAD=";
  for (const std::string& name : libraries.client_names) preload += name + ":";
  preload.pop_back();
  machine.candidates_environment = {path, preload};
  machine.candidates_arguments.insert(machine.candidates_arguments.end(),
                                      {"--client-lib", libraries.client.string()});
}

Status set_up(Machine& machine, const Options& options, const Progress& progress) {
  MC_TRY_VOID(check_options(options), "set-up");
  machine.architecture = options.musa_architecture;
  machine.compiles_musa = true;
  MC_TRY(compile::CudaRuntime runtime,
         compile::find_musa_runtime(machine.pytorch, machine.architecture), "set-up");
  machine.environment = execute::environment_of_one_device("MUSA");
  if (options.architecture.empty()) MC_TRY_VOID(find_device(machine, options), "set-up");
  MC_TRY(const compile::MusaLibraries libraries,
         compile::prepare_musa_libraries(machine.pytorch, runtime, machine.layout, progress),
         "set-up");
  machine.arguments = {"--executor-lib", libraries.executor.string()};
  machine.candidates_arguments = {"--aten-lib", libraries.aten.string()};
  if (!machine.devices.empty()) add_client(machine, libraries);
  machine.cost_max = kNativeCostMax;
  machine.bytes_max = kNativeBytesMax;
  return set_toolchain(machine, std::move(runtime));
}

std::vector<Fact> look(const compile::PyTorch* pytorch) {
  return musa_facts(look_for_musa(pytorch));
}

Result<std::optional<execute::CudaDevice>> device() {
  return Error{ErrorCode::kInvalidInput, "the numbers of MUSA's attributes are not known"};
}

}  // namespace

const Backend kMusaBackend{
    task::Backend::kMusa, is_here, set_up, "nothing of it has met hardware (docs/musa.md)",
    is_architecture,      look,    device};

}  // namespace mc::eval
