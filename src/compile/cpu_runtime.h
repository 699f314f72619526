// SPDX-License-Identifier: Apache-2.0
//
// CpuRuntime: what the CPU backend needs that must be built against the user's PyTorch.
//
// The precompiled preludes (the facade's or PyTorch's own tensor headers, and the emulator's
// language) and the shim that the candidate process loads, with the facade's runtime in it.  Built
// once per PyTorch and per content of emu/ (once.h); takes one to three minutes the first time.
#ifndef MC_COMPILE_CPU_RUNTIME_H_
#define MC_COMPILE_CPU_RUNTIME_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "compile/cpu_lacks.h"
#include "compile/facade.h"
#include "compile/pytorch.h"
#include "core/layout.h"
#include "core/result.h"

namespace mc::compile {

struct CpuRuntime {
  std::string fingerprint;  // The fingerprint of all that decides what a compilation yields.
  std::filesystem::path directory;  // Holds what was built.
  std::filesystem::path shim;       // Shared object for the candidate process.
  std::filesystem::path emulator;   // libmc_emu.so
  std::filesystem::path compiler;   // g++
  std::filesystem::path nm;
  std::filesystem::path addr2line;
  std::vector<std::string> visible;  // Paths that the compiler reads, should they lie below /tmp.
  std::vector<std::string> flags;    // For every candidate source,
  std::vector<std::string> full_flags;  // Flags against PyTorch's own headers.
  std::vector<std::string> thin_flags;  // Flags against the facade's headers.
  std::optional<Facade> facade;
  CudaNames names;  // Which of them the backend has not is seen where a candidate does not compile.

  // Full headers for all, and artifacts of their own.
  void leave_facade();
};

Result<CpuRuntime> prepare_cpu_runtime(const PyTorch& pytorch, const Layout& layout,
                                       const Progress& progress);

}  // namespace mc::compile

#endif  // MC_COMPILE_CPU_RUNTIME_H_
