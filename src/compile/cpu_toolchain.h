// SPDX-License-Identifier: Apache-2.0
//
// CpuToolchain: CUDA C++ to a shared object that runs on the CPU.
//
// Each source is rewritten by tokens (lex/rewrite.h) and compiled by g++ in the sandbox against the
// emulator's headers and a precompiled prelude: the facade's, or PyTorch's own where that does not
// serve (facade.h).
#ifndef MC_COMPILE_CPU_TOOLCHAIN_H_
#define MC_COMPILE_CPU_TOOLCHAIN_H_

#include <atomic>
#include <cstdint>
#include <filesystem>

#include "compile/artifact_store.h"
#include "compile/cpu_runtime.h"
#include "compile/toolchain.h"

namespace mc::compile {

class CpuToolchain final : public Toolchain {
 public:
  // `bytes_max` is for all artifacts below `artifacts`.
  CpuToolchain(CpuRuntime runtime, std::filesystem::path artifacts,
               uint64_t bytes_max = kArtifactBytesMax)
      : runtime_(std::move(runtime)),
        store_(std::move(artifacts), runtime_.fingerprint, bytes_max) {}

  Result<Compilation> compile(const Extension& extension, const LocationMapper& mapper,
                              const CompileLimits& limits) override;

 private:
  // Adds what the compilers used to `cpu_us`.
  Result<Compilation> find_or_build(const Extension& extension, const LocationMapper& mapper,
                                    const CompileLimits& limits, std::atomic<int64_t>& cpu_us);

  CpuRuntime runtime_;  // Constant after construction.
  ArtifactStore store_;
};

}  // namespace mc::compile

#endif  // MC_COMPILE_CPU_TOOLCHAIN_H_
