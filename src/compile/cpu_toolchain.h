// SPDX-License-Identifier: Apache-2.0
//
// CpuToolchain: CUDA C++ to a shared object that runs on the CPU.
//
// Each source is rewritten by tokens (lex/rewrite.h) and compiled by g++ in the sandbox against the
// emulator's headers and a precompiled prelude: the facade's, or PyTorch's own where that does not
// serve (facade.h).
#ifndef MC_COMPILE_CPU_TOOLCHAIN_H_
#define MC_COMPILE_CPU_TOOLCHAIN_H_

#include <filesystem>

#include "compile/cpu_runtime.h"
#include "compile/toolchain.h"
#include "compile/turns.h"

namespace mc::compile {

class CpuToolchain final : public Toolchain {
 public:
  CpuToolchain(CpuRuntime runtime, std::filesystem::path artifacts)
      : runtime_(std::move(runtime)), artifacts_(std::move(artifacts)) {}

  Result<Compilation> compile(const Extension& extension, const PlaceMapper& mapper,
                              const CompileLimits& limits) override;

 private:
  // Constant after construction.
  CpuRuntime runtime_;
  std::filesystem::path artifacts_;

  Turns turns_;  // By artifact.
};

}  // namespace mc::compile

#endif  // MC_COMPILE_CPU_TOOLCHAIN_H_
