// SPDX-License-Identifier: Apache-2.0
//
// Native code for the processes of a CUDA device and for candidates that use it; compiled once
// (once.h).
#ifndef MC_COMPILE_CUDA_LIBRARIES_H_
#define MC_COMPILE_CUDA_LIBRARIES_H_

#include <filesystem>

#include "compile/cuda_runtime.h"
#include "compile/pytorch.h"
#include "core/layout.h"
#include "core/result.h"

namespace mc::compile {

struct CandidateLibraries {
  // Counts ATen operators and removes those that a candidate may not use
  // (device/facade/runtime/record.cc, guard.cc).  Contains also the runtime of candidates that were
  // compiled with the facade: their binding and tensors.
  std::filesystem::path aten;
  // The libcudart.so.13 of candidate processes without a device (device/commands.h).
  std::filesystem::path client;
};

// The libraries with PyTorch's operators as commands (device/operators), for a device that cannot
// run PyTorch's kernels.
struct PtxLibraries : CandidateLibraries {
  std::filesystem::path operators;
};

struct CudaLibraries : CandidateLibraries {
  std::filesystem::path executor;  // The part in the device process.
};

// kUnavailable where a compiler fails.
Result<PtxLibraries> prepare_ptx_libraries(const PyTorch& pytorch, const CudaRuntime& runtime,
                                           const Layout& layout, const Progress& progress);
Result<CudaLibraries> prepare_cuda_libraries(const PyTorch& pytorch, const CudaRuntime& runtime,
                                             const Layout& layout, const Progress& progress);

}  // namespace mc::compile

#endif  // MC_COMPILE_CUDA_LIBRARIES_H_
