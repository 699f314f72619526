// SPDX-License-Identifier: Apache-2.0
//
// The CPU backend: CUDA C++ compiled for the host, kernels by emulation (emu/).
#include <string>

#include "compile/artifact_store.h"
#include "compile/cpu_toolchain.h"
#include "core/file.h"
#include "eval/machine.h"
#include "eval/musa_dialect.h"

namespace mc::eval {
namespace {

Status set_up(Machine& machine, const Options& options, const Progress& progress) {
  MC_TRY(compile::CpuRuntime runtime,
         compile::prepare_cpu_runtime(machine.pytorch, machine.layout, progress), "set-up");
  if (options.full_headers) runtime.leave_facade();
  MC_TRY(const uint64_t bytes_max, compile::artifact_bytes_max(), "set-up");
  machine.environment = {"CUDA_VISIBLE_DEVICES="};
  const int warp = warp_threads(options.dialect, options.musa_architecture);
  machine.candidates_arguments = {"--emu-lib",   runtime.emulator.string(),
                                  "--shim",      runtime.shim.string(),
                                  "--warp-size", std::to_string(warp)};
  machine.emulator = std::move(runtime);
  machine.toolchain = std::make_unique<compile::CpuToolchain>(
      *machine.emulator, cache_directory() / "artifacts", bytes_max);
  return ok();
}

}  // namespace

const Backend kCpuBackend{task::Backend::kCpu, [](const compile::PyTorch&) { return true; }, set_up,
                          "CUDA source runs on the CPU by emulation"};

}  // namespace mc::eval
