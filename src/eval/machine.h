// SPDX-License-Identifier: Apache-2.0
//
// Machine: the features of this machine for one backend, detected once.  The backends: each is one
// source file (cpu_backend.cc, cuda_backend.cc, musa_backend.cc) that fills in a Machine.  No other
// code asks which backend it is: it asks for the features of the Machine.
#ifndef MC_EVAL_MACHINE_H_
#define MC_EVAL_MACHINE_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compile/cuda_runtime.h"
#include "compile/pytorch.h"
#include "compile/toolchain.h"
#include "core/fact.h"
#include "core/layout.h"
#include "core/result.h"
#include "eval/options.h"
#include "execute/children.h"
#include "execute/cuda_driver.h"
#include "execute/executor.h"

namespace mc::eval {

// A device that runs candidates natively.  On it candidates are timed, take turns, and may run out
// of memory.
struct Device {
  std::string id;  // "GPU-…"
  int64_t bytes = 0;
  // Device nodes below /dev that a process needs to compute on the device.
  std::vector<std::string> nodes;
  // Environment variables that make this device, and no other, visible to a process.
  std::vector<std::string> environment{};
};

struct Machine {
  Layout layout;
  compile::PyTorch pytorch;
  task::Backend backend = task::Backend::kCpu;  // For verdicts and messages.
  std::unique_ptr<compile::Toolchain> toolchain;
  bool compiles_musa = false;  // True if the toolchain compiles MUSA sources without a port.
  // Functions of warps of 128 threads, as text before device code in MUSA's dialect, for a compiler
  // that has warps of 32 (musa_warps.h); "" where the compiler supports the device's warps.
  std::string warps_prelude;
  std::string architecture;     // The toolchain's target: "90"; "" where there is only one.
  std::vector<Device> devices;  // All of one kind; none on the CPU backend.
  // True if kernels run in a device process that needs no GPU and reports the faults that it finds
  // in them.
  bool has_ptx_device = false;
  // The backend whose device shows the races that this one hides; nothing where this backend shows
  // them itself.
  std::optional<task::Backend> race_checker{};
  // Languages within Python that candidates may write kernels in: "triton".
  std::vector<std::string> languages;
  std::filesystem::path sanitizer;  // The program compute-sanitizer; "" where there is none.
  // The library that candidates' extensions need on a device; "" where they need none.
  std::filesystem::path aten;
  // The limits of one forward pass at the judged sizes.
  double cost_max = execute::JudgeOptions().cost_max;
  int64_t bytes_max = execute::JudgeOptions().bytes_max;
  // Arguments and environment variables for python/harness/worker/zygote.py: for both kinds of
  // zygote, and further ones for the candidates' zygote.
  std::vector<std::string> arguments;
  std::vector<std::string> candidates_arguments;
  std::vector<std::string> environment;
  std::vector<std::string> candidates_environment;
};

struct Backend {
  task::Backend name;  // The name that Python uses, too (python/harness/worker/backends.py).
  // True if this machine can judge with the backend.
  bool (*is_here)(const compile::PyTorch& pytorch);
  // Builds the missing parts in the cache.  kUnavailable names what this machine lacks.
  Status (*set_up)(Machine& machine, const Options& options, const Progress& progress);
  const char* summary;  // For the doctor: "judges and times on device 0".
  // True if the backend compiles for devices of this name, which need not be here.
  bool (*knows_architecture)(std::string_view) = [](std::string_view) { return false; };
  // The parts of this machine that only this backend needs, in one section; kMissing is a part
  // without which it cannot judge.  The argument is null where there is no PyTorch.
  std::vector<Fact> (*look)(const compile::PyTorch*) = [](const compile::PyTorch*) {
    return std::vector<Fact>();
  };
  // The device that the backend judges on, according to its driver; nothing on the CPU backend.
  Result<std::optional<execute::CudaDevice>> (*device)() = [] {
    return Result<std::optional<execute::CudaDevice>>(std::nullopt);
  };
};
extern const Backend kCpuBackend;
extern const Backend kCudaBackend;
extern const Backend kMusaBackend;
std::span<const Backend* const> backends();  // All backends, in the order of preference.
const Backend& backend_of(task::Backend name);

// The machine for the backend that the options name.
Result<Machine> find_machine(const Options& options, const Progress& progress);

// The options of a judge under these settings.
execute::JudgeOptions judge_options(const task::Correctness& correctness, const Machine& machine,
                                    const Options& options);

// The protocol of a verdict: how it was reached.  `policy` is the policy's version; `device` is
// null where there is none.
task::Protocol protocol_of(const Options& options, const Device* device, const std::string& policy,
                           const task::Correctness& correctness);

// The devices among `shown`, the driver's list, that --devices names: "all", or a list of numbers
// and of ids or their beginnings.  The result is of one kind, since one program is compiled for all
// of them: "all" leaves out devices that differ from the first one, and a list with such a device
// is an error.  kInvalidInput names the devices that there are.
Result<std::vector<execute::CudaDevice>> chosen_devices(
    const std::string& names, const std::vector<execute::CudaDevice>& shown);

execute::ZygoteOptions zygote_options(const Machine& machine, execute::Roles roles);

// ---- Steps that backends share ------------------------------------------------------------------

// The limits of a device that computes the native shapes of tasks; its driver refuses those that do
// not fit into its memory.
inline constexpr double kNativeCostMax = 1e16;
inline constexpr int64_t kNativeBytesMax = int64_t{24} << 30;

// The paths of the device nodes in a folder whose names begin with `prefix`, in order.
std::vector<std::string> device_nodes(const char* folder, std::string_view prefix);
// Replaces CUDA's runtime and driver in candidate processes by the client library.
void add_cuda_client(Machine& machine, const std::filesystem::path& client);
// The toolchain of a runtime, with its artifacts in the cache.
Status set_toolchain(Machine& machine, compile::CudaRuntime runtime);

}  // namespace mc::eval

#endif  // MC_EVAL_MACHINE_H_
