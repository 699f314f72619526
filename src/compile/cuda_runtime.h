// SPDX-License-Identifier: Apache-2.0
//
// CudaRuntime: what it takes to compile for an NVIDIA device: nvcc, the host compiler and the flags
// that torch.utils.cpp_extension would pass.  Plain data; a test may change it.
//
// Finding it needs no device and touches none: the architecture is given.
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

// The same for sources that the facade serves; what their libraries want of PyTorch is in the
// process when they are loaded (cuda_libraries.h).
struct CudaFacade {
  Facade names;
  std::vector<std::string> nvcc_flags;
  std::vector<std::string> cxx_flags;
  std::vector<std::string> link_flags;
  std::optional<QuickCompiler> quick{};  // None: nvcc compiles all.
};

// The code that nvcc makes for the device.
enum class CodeKind : uint8_t {
  kMachine,
  kPtx,  // Alone and as text, with the lines of the source.
};

struct CudaRuntime {
  std::string fingerprint;  // The fingerprint of all that decides what a compilation yields.
  std::filesystem::path nvcc;
  std::string nvcc_name = "nvcc";  // For messages.
  std::string release;             // The release of nvcc, "13.0".
  std::filesystem::path root;      // The toolkit: root/include, root/lib64.
  std::filesystem::path compiler;  // g++
  std::filesystem::path nm;
  std::string architecture;  // Compute capability without a point: "90".
  CodeKind code = CodeKind::kMachine;
  std::vector<std::string> visible;     // Paths that compilers read, should they lie below /tmp.
  std::vector<std::string> code_flags;  // The architecture and the kind of code, for nvcc.
  std::vector<std::string> nvcc_flags;  // All flags for a CUDA source.
  // Flags that change what nvcc prints, not what it compiles.
  std::vector<std::string> print_flags = {"--resource-usage",
                                          "-Xcompiler=-fno-diagnostics-show-caret"};
  std::vector<std::string> cxx_flags;   // For every C++ source.
  std::vector<std::string> link_flags;  // Behind the objects.
  std::string cxx_prelude;              // Text that load_inline puts before the C++ sources,
  std::string cuda_prelude;             // Text that load_inline puts before the CUDA sources.
  std::optional<CudaFacade> facade;     // None: PyTorch's full headers serve all.
};

// The nvcc in $CUDA_HOME/bin, on PATH, in /usr/local/cuda/bin or in the Python environment.
// kUnavailable, with what to install, if nothing is installed.
Result<std::filesystem::path> find_nvcc(const PyTorch& pytorch);

// "13.0" from "Cuda compilation tools, release 13.0, V13.0.88"; "" from other texts.
std::string release_of_nvcc(const std::string& version_text);

// The compiler for an architecture, and its flags.
// kUnavailable, with what to install, when nvcc, g++ or a PyTorch for CUDA is missing or they do
// not fit together; kInvalidInput when `architecture` is no compute capability.
Result<CudaRuntime> find_cuda_runtime(const PyTorch& pytorch, const std::string& architecture,
                                      CodeKind code = CodeKind::kMachine);

// Adds the facade; finds out once per PyTorch and toolkit what names it lacks.
Status add_facade(CudaRuntime& runtime, const PyTorch& pytorch, const Layout& layout,
                  const Progress& progress);

// The path of compute-sanitizer in the toolkit at `root`, or of another one; "" where there is
// none.
std::filesystem::path find_sanitizer(const std::filesystem::path& root);

// "-gencode=arch=compute_90a,code=sm_90a".
std::string gencode_flag(std::string_view architecture);

}  // namespace mc::compile

#endif  // MC_COMPILE_CUDA_RUNTIME_H_
