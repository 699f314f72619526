// SPDX-License-Identifier: Apache-2.0
//
// CudaToolchain: CUDA C++ to a shared object for one NVIDIA architecture.
//
// The sources are those that load_inline would write, the flags those that it would pass
// (cuda_runtime.h), but that the facade's headers stand in for PyTorch's where they serve
// (facade.h).  No device is needed or touched.
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
  // `bytes_max` is for all artifacts below `artifacts`.
  CudaToolchain(CudaRuntime runtime, std::filesystem::path artifacts,
                uint64_t bytes_max = kArtifactBytesMax)
      : runtime_(std::move(runtime)),
        store_(std::move(artifacts), runtime_.fingerprint, bytes_max) {}

  // REQUIRES: the flags of `extension` are those that legality::check_flags let pass; they go to
  // the compilers as they are.  Each of the two compilers gets the whole memory limit.
  Result<Compilation> compile(const Extension& extension, const LocationMapper& mapper,
                              const CompileLimits& limits) override;

 private:
  // Adds what the compilers used to `cpu_us`.
  Result<Compilation> find_or_build(const Extension& extension, const LocationMapper& mapper,
                                    const CompileLimits& limits, std::atomic<int64_t>& cpu_us);

  CudaRuntime runtime_;  // Constant after construction.
  ArtifactStore store_;
};

}  // namespace mc::compile

#endif  // MC_COMPILE_CUDA_TOOLCHAIN_H_
