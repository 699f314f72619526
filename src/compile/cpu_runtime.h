// SPDX-License-Identifier: Apache-2.0
//
// CpuRuntime: what the CPU backend needs that must be built against the user's PyTorch.
//
// The precompiled prelude (PyTorch's tensor headers and the emulator's language) and the shim that
// the contestant loads.  Built once per PyTorch and per content of emu/, then kept in the cache;
// takes about a minute the first time.
#ifndef MC_COMPILE_CPU_RUNTIME_H_
#define MC_COMPILE_CPU_RUNTIME_H_

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compile/pytorch.h"
#include "core/layout.h"
#include "core/result.h"

namespace mc::compile {

struct CpuRuntime {
  std::string fingerprint;          // Of all that decides what a compilation yields.
  std::filesystem::path directory;  // Holds the precompiled header; first on the include path.
  std::filesystem::path shim;       // Shared object for the contestant.
  std::filesystem::path emulator;   // libmc_emu.so
  std::filesystem::path compiler;   // g++
  std::filesystem::path nm;
  std::filesystem::path addr2line;
  std::vector<std::string> visible;  // What the compiler reads, should it lie below /tmp.
  std::vector<std::string> flags;    // For every candidate source.
};

// Called with a phrase before each long step.
using Progress = std::function<void(std::string_view step)>;

Result<CpuRuntime> prepare_cpu_runtime(const PyTorch& pytorch, const Layout& layout,
                                       const Progress& progress);

}  // namespace mc::compile

#endif  // MC_COMPILE_CPU_RUNTIME_H_
