// SPDX-License-Identifier: Apache-2.0
//
// CudaRuntime: everything that compiling for an NVIDIA device needs: nvcc, the host compiler and
// the flags that torch.utils.cpp_extension would pass.  Plain data; a test may change it.
//
// Finding it needs no device: the architecture is a parameter.
//
//   MC_TRY(CudaRuntime runtime, find_cuda_runtime(pytorch, "90"), "CUDA backend");
#ifndef MC_COMPILE_CUDA_RUNTIME_H_
#define MC_COMPILE_CUDA_RUNTIME_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compile/facade.h"
#include "compile/pytorch.h"
#include "compile/quick.h"
#include "core/layout.h"
#include "core/result.h"

namespace mc::compile {

// The same for sources that compile with the facade.  The undefined symbols of their libraries are
// in the process when they are loaded (cuda_libraries.h).
struct CudaFacade {
  Facade names;
  std::vector<std::string> nvcc_flags;
  std::vector<std::string> cxx_flags;
  std::vector<std::string> link_flags;
  std::optional<QuickCompiler> quick{};  // Empty: nvcc compiles everything.
};

// The kind of device code that nvcc generates.
enum class CodeKind : uint8_t {
  kMachine,
  kPtx,  // Only PTX, as text, with the line numbers of the source.
};

struct CudaRuntime {
  std::string fingerprint;  // A hash of everything that determines the result of a compilation.
  std::filesystem::path nvcc;
  std::string nvcc_name = "nvcc";  // For messages.
  std::string release;             // The release of nvcc, "13.0".
  std::filesystem::path root;      // The toolkit: root/include, root/lib64.
  std::filesystem::path compiler;  // g++
  std::filesystem::path nm;
  std::string architecture;  // Compute capability without a point: "90".
  CodeKind code = CodeKind::kMachine;
  std::vector<std::string> visible;     // Paths that compilers read; they may be below /tmp.
  std::vector<std::string> code_flags;  // Flags of nvcc for the architecture and the kind of code.
  std::vector<std::string> nvcc_flags;  // All flags for a CUDA source.
  // Flags that affect the messages of nvcc, but not its code.
  std::vector<std::string> print_flags = {"--resource-usage",
                                          "-Xcompiler=-fno-diagnostics-show-caret"};
  std::vector<std::string> cxx_flags;   // Flags for every C++ source.
  std::vector<std::string> link_flags;  // Flags after the objects.
  std::string cxx_prelude;              // Text that load_inline puts before the C++ sources.
  std::string cuda_prelude;             // Text that load_inline puts before the CUDA sources.
  std::optional<CudaFacade> facade;     // Empty: all sources use PyTorch's full headers.
};

// The nvcc in $CUDA_HOME/bin, on PATH, in /usr/local/cuda/bin or in the Python environment.
// kUnavailable, with what to install, where there is none.
Result<std::filesystem::path> find_nvcc(const PyTorch& pytorch);

// "13.0" from "Cuda compilation tools, release 13.0, V13.0.88"; "" from other texts.
std::string release_of_nvcc(const std::string& version_text);

// Finds the compiler for an architecture, and its flags.  kUnavailable, with what to install, when
// nvcc, g++ or a PyTorch for CUDA is missing or their versions do not match; kInvalidInput when
// `architecture` is not a compute capability.
Result<CudaRuntime> find_cuda_runtime(const PyTorch& pytorch, const std::string& architecture,
                                      CodeKind code = CodeKind::kMachine);

// Adds the facade.  The list of names that it lacks is computed once for each PyTorch and toolkit.
Status add_facade(CudaRuntime& runtime, const PyTorch& pytorch, const Layout& layout,
                  const Progress& progress);

// The path of compute-sanitizer in the toolkit at `root`, "" for none, or elsewhere on the machine;
// "" where there is none.
std::filesystem::path find_sanitizer(const std::filesystem::path& root);

// "-gencode=arch=compute_90a,code=sm_90a".
std::string gencode_flag(std::string_view architecture);

}  // namespace mc::compile

#endif  // MC_COMPILE_CUDA_RUNTIME_H_
