// SPDX-License-Identifier: Apache-2.0
//
// The MUSA compiler as a CudaRuntime: mcc in place of nvcc, with the flags that
// torch_musa.utils.musa_extension would pass, and the native code for a MUSA device's processes.
//
// This code was never run with a real mcc or MUSA hardware (docs/musa.md).
//
//   MC_TRY(CudaRuntime runtime, find_musa_runtime(pytorch, "mp_31"), "MUSA backend");
#ifndef MC_COMPILE_MUSA_RUNTIME_H_
#define MC_COMPILE_MUSA_RUNTIME_H_

#include <filesystem>
#include <string>
#include <vector>

#include "compile/cuda_runtime.h"
#include "compile/pytorch.h"
#include "core/layout.h"
#include "core/result.h"

namespace mc::compile {

// The folder $MUSA_HOME, $MUSA_PATH or /usr/local/musa and its compiler, unless $PYTORCH_MCC names
// another one (a ccache before it is ignored).  The files need not exist.
struct MusaToolkit {
  std::filesystem::path home;
  std::filesystem::path mcc;
  std::filesystem::path libraries;  // home/lib64, or home/lib.
};
MusaToolkit musa_toolkit();

// kUnavailable, with what to install, when mcc, g++ or torch_musa is missing.
Result<CudaRuntime> find_musa_runtime(const PyTorch& pytorch, const std::string& architecture);

struct MusaLibraries {
  std::filesystem::path aten;      // CudaLibraries::aten without the facade.
  std::filesystem::path executor;  // The device process.
  std::filesystem::path client;    // The substitute for libmusart in candidate processes.
  // The SONAMEs that the client replaces, as links beside it.
  std::vector<std::string> client_names;
};

// Compiles the sources of device/ with MUSA names (device/musa/names.py), once.  kUnavailable where
// a compiler fails.
Result<MusaLibraries> prepare_musa_libraries(const PyTorch& pytorch, const CudaRuntime& runtime,
                                             const Layout& layout, const Progress& progress);

}  // namespace mc::compile

#endif  // MC_COMPILE_MUSA_RUNTIME_H_
