// SPDX-License-Identifier: Apache-2.0
//
// The CPU backend: candidates are compiled to PTX, and a device process executes it without a GPU
// (device/ptx, device/ptx_driver).  It does not time.
#include <algorithm>
#include <iterator>
#include <string>

#include "compile/cuda_libraries.h"
#include "compile/cuda_runtime.h"
#include "core/file.h"
#include "eval/machine.h"
#include "task/musa_device.h"

namespace mc::eval {
namespace {

namespace fs = std::filesystem;

// The architecture of the device in software (device/ptx_driver/description.h).
constexpr const char* kArchitecture = "90";
constexpr const char* kExecutor = "libmc_ptx_executor.so";
constexpr const char* kMusaName = "MUSA on CPU";  // The device name that a MUSA candidate sees.
constexpr size_t kPreludeBytesMax = 1 << 16;

Status check_options(const Options& options) {
  if (!options.architecture.empty()) {
    return Error{ErrorCode::kInvalidInput, "--architecture: --backend cpu has one device alone"};
  }
  return ok();
}

Status set_up(Machine& machine, const Options& options, const Progress& progress) {
  MC_TRY_VOID(check_options(options), "set-up");
  const fs::path executor = machine.layout.library(kExecutor);
  if (!path_exists(executor)) {
    return Error{ErrorCode::kUnavailable,
                 "this musacoder was built without the device that executes PTX (" +
                     executor.string() + " is missing): build it where cuda_runtime_api.h is"};
  }
  MC_TRY(compile::CudaRuntime runtime,
         compile::find_cuda_runtime(machine.pytorch, kArchitecture, compile::CodeKind::kPtx),
         "set-up");
  if (!options.full_headers) {
    MC_TRY_VOID(compile::add_facade(runtime, machine.pytorch, machine.layout, progress), "set-up");
  }
  MC_TRY(const compile::PtxLibraries libraries,
         compile::prepare_ptx_libraries(machine.pytorch, runtime, machine.layout, progress),
         "set-up");
  machine.has_ptx_device = true;
  machine.languages = {"triton"};
  machine.environment = {"CUDA_VISIBLE_DEVICES=0"};
  const int warp = task::warp_threads(options.dialect, options.musa_architecture);
  if (warp != 32) {
    MC_TRY(machine.warps_prelude,
           read_file(machine.layout.share("device") / "musa/warps_of_128.cuh", kPreludeBytesMax),
           "set-up");
  }
  machine.arguments = {"--executor-lib",  executor.string(),
                       "--operators-lib", libraries.operators.string(),
                       "--warp-size",     std::to_string(warp)};
  if (options.profile) machine.arguments.emplace_back("--count");
  if (options.dialect == task::Dialect::kMusa) {
    machine.arguments.insert(machine.arguments.end(), {"--device-name", kMusaName});
  }
  machine.candidates_arguments = {"--aten-lib", libraries.aten.string()};
  add_cuda_client(machine, libraries.client);
  // Without PyTorch's caching allocator each tensor is an allocation whose end the device knows.
  machine.candidates_environment.push_back("PYTORCH_NO_CUDA_MEMORY_CACHING=1");
  // With one environment both zygotes come of one import of PyTorch; the judge's processes have no
  // channel, so for them the client has no device.
  std::ranges::move(machine.candidates_environment, std::back_inserter(machine.environment));
  machine.candidates_environment.clear();
  return set_toolchain(machine, std::move(runtime));
}

}  // namespace

const Backend kCpuBackend{task::Backend::kCpu, [](const compile::PyTorch&) { return true; }, set_up,
                          "kernels run on the CPU as PTX, with checks"};

}  // namespace mc::eval
