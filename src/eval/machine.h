// SPDX-License-Identifier: Apache-2.0
//
// Machine: what this machine has for one backend, found once.
#ifndef MC_EVAL_MACHINE_H_
#define MC_EVAL_MACHINE_H_

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compile/cpu_runtime.h"
#include "compile/pytorch.h"
#include "compile/toolchain.h"
#include "core/layout.h"
#include "core/result.h"
#include "eval/pipeline.h"
#include "execute/children.h"
#include "execute/executor.h"

namespace mc::eval {

struct Machine {
  Layout layout;
  compile::PyTorch pytorch;
  task::Backend backend = task::Backend::kCpu;
  std::unique_ptr<compile::Toolchain> toolchain;
  std::optional<compile::CpuRuntime> cpu;  // Of the CPU backend.
  std::filesystem::path aten_lib;          // Of the CUDA backend.
  std::filesystem::path device_lib;        // The same.
  std::filesystem::path sanitizer;         // The same; empty where there is none.
  std::vector<std::string> devices;        // Device nodes.
  std::string architecture;                // Of the CUDA backend: "90".
  std::string gpu;                         // Its GPU, "GPU-…"; "" where there is none,
  int64_t gpu_bytes = 0;                   // and its memory.
};

// Builds what is missing in the cache.  kUnavailable says what this machine lacks.
Result<Machine> find_machine(const Options& options, const Progress& progress);

// What judges are asked to do.
execute::JudgeOptions judge_options(const Options& options);

execute::ZygoteOptions zygote_options(const Machine& machine, execute::Roles roles);

}  // namespace mc::eval

#endif  // MC_EVAL_MACHINE_H_
