// SPDX-License-Identifier: Apache-2.0
//
// Machine: what this machine has for one backend, found once.  And the backends: each is one source
// (cpu_backend.cc, cuda_backend.cc, musa_backend.cc) that fills in a Machine.
// Nobody else asks which backend it is: what differs is told by what the Machine has.
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

#include "compile/pytorch.h"
#include "compile/toolchain.h"
#include "core/fact.h"
#include "core/layout.h"
#include "core/result.h"
#include "eval/pipeline.h"
#include "execute/children.h"
#include "execute/cuda_driver.h"
#include "execute/executor.h"

namespace mc::eval {

// The place where candidates run natively: what is timed, shared by turns and short of memory.
struct Device {
  std::string id;  // "GPU-…"
  int64_t bytes = 0;
  std::vector<std::string> nodes;  // Below /dev, which those see who compute on it.
  // Variables by which a process is shown this device and no other one.
  std::vector<std::string> environment{};
};

struct Machine {
  Layout layout;
  compile::PyTorch pytorch;
  task::Backend backend = task::Backend::kCpu;  // For verdicts and messages.
  std::unique_ptr<compile::Toolchain> toolchain;
  bool compiles_musa = false;  // True if the toolchain wants sources of MUSA as they are.
  // Functions of warps of 128 threads, as text before device code in MUSA's dialect, for a compiler
  // that knows warps of 32 (musa_warps.h); "" where the compiler knows the device's warps.
  std::string warps_prelude;
  std::string architecture;     // That the toolchain compiles for: "90"; "" where there is but one.
  std::vector<Device> devices;  // All of one kind; none on the CPU backend.
  // Kernels run in a device process that needs no GPU and reports what it finds in them.
  bool has_ptx_device = false;
  // The backend whose device shows the races that this one hides; none where this one shows them.
  std::optional<task::Backend> race_checker{};
  // Languages within Python whose kernels candidates may have: "triton".
  std::vector<std::string> languages;
  std::filesystem::path sanitizer;  // The compute-sanitizer; "" where there is none.
  std::filesystem::path aten;  // The library that candidates' extensions need on a device; or "".
  // The limits of one forward at the sizes that are judged.
  double cost_max = execute::JudgeOptions().cost_max;
  int64_t bytes_max = execute::JudgeOptions().bytes_max;
  // For python/harness/worker/zygote.py: of both kinds, of the candidates' besides; and variables
  // of its environment.
  std::vector<std::string> arguments;
  std::vector<std::string> candidates_arguments;
  std::vector<std::string> environment;
  std::vector<std::string> candidates_environment;
};

struct Backend {
  task::Backend name;  // In Python, too (python/harness/worker/backends.py).
  bool (*is_here)(const compile::PyTorch& pytorch);  // True if this machine can judge by it.
  // Builds what is missing in the cache.  kUnavailable says what this machine lacks.
  Status (*set_up)(Machine& machine, const Options& options, const Progress& progress);
  const char* summary;  // For the doctor: "judges and times on device 0".
  // True if it compiles for devices of this name, which need not be here.
  bool (*knows_architecture)(std::string_view) = [](std::string_view) { return false; };
  // The needs that it alone has of this machine, in one section; kMissing is what it cannot judge
  // without.  Null: no PyTorch.
  std::vector<Fact> (*look)(const compile::PyTorch*) = [](const compile::PyTorch*) {
    return std::vector<Fact>();
  };
  // The device that it judges on, by its driver; none on the CPU backend.
  Result<std::optional<execute::CudaDevice>> (*device)() = [] {
    return Result<std::optional<execute::CudaDevice>>(std::nullopt);
  };
};
extern const Backend kCpuBackend;
extern const Backend kCudaBackend;
extern const Backend kMusaBackend;
std::span<const Backend* const> backends();  // Those that are preferred first.
const Backend& backend_of(task::Backend name);

// The machine for the backend that the options name.
Result<Machine> find_machine(const Options& options, const Progress& progress);

// The work that judges are asked to do.
execute::JudgeOptions judge_options(const task::Correctness& correctness, const Machine& machine,
                                    const Options& options);

// The record in a verdict of how it was found.  `policy` is the policy's version, `device` null
// where there is none.
task::Protocol protocol_of(const Options& options, const Device* device, const std::string& policy,
                           const task::Correctness& correctness);

// Those of the devices that the driver shows which --devices names: all, or a list of numbers and
// of ids or their beginnings.  They are of one kind, since one program is compiled for all of them:
// `all` leaves out those that are not like the first one, and a list with such is refused.
// kInvalidInput names what there is.
Result<std::vector<execute::CudaDevice>> chosen_devices(
    const std::string& names, const std::vector<execute::CudaDevice>& shown);

execute::ZygoteOptions zygote_options(const Machine& machine, execute::Roles roles);

}  // namespace mc::eval

#endif  // MC_EVAL_MACHINE_H_
