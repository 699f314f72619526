// SPDX-License-Identifier: Apache-2.0
//
// CudaToolchain: compiles CUDA C++ to a shared object for one NVIDIA architecture.
//
// The sources are those that load_inline would write, and the flags are those that it would pass
// (cuda_runtime.h), except that the facade's headers replace PyTorch's where they suffice
// (facade.h).  No device is needed.
#ifndef MC_COMPILE_CUDA_TOOLCHAIN_H_
#define MC_COMPILE_CUDA_TOOLCHAIN_H_

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "compile/artifact_store.h"
#include "compile/cuda_runtime.h"
#include "compile/toolchain.h"

namespace mc::compile {

class CudaToolchain final : public Toolchain {
 public:
  // `bytes_max` bounds all artifacts below `artifacts`.
  CudaToolchain(CudaRuntime runtime, std::filesystem::path artifacts,
                uint64_t bytes_max = kArtifactBytesMax)
      : runtime_(std::move(runtime)),
        store_(std::move(artifacts), runtime_.fingerprint, bytes_max) {}

  // REQUIRES: legality::check_flags has accepted the flags of `extension`; they are passed to the
  // compilers unchanged.  Each of the two compilers gets the whole memory limit.
  Result<Compilation> compile(const Extension& extension, const LocationMapper& mapper,
                              const CompileLimits& limits) override;

 private:
  // Adds the processor time of the compilers to `cpu_us`.
  Result<Compilation> find_or_build(const Extension& extension, const LocationMapper& mapper,
                                    const CompileLimits& limits, std::atomic<int64_t>& cpu_us);

  CudaRuntime runtime_;  // Constant after construction.
  ArtifactStore store_;
};

}  // namespace mc::compile

#endif  // MC_COMPILE_CUDA_TOOLCHAIN_H_
