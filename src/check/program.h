// SPDX-License-Identifier: Apache-2.0
//
// Compiles and runs a CUDA program without a GPU: its kernels are executed as PTX, with checks of
// bounds, alignment, races, barriers and uninitialised reads (docs/check.md).
#ifndef MC_CHECK_PROGRAM_H_
#define MC_CHECK_PROGRAM_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "check/device.h"
#include "compile/cuda_runtime.h"
#include "core/layout.h"
#include "core/result.h"
#include "sandbox/child.h"
#include "task/evidence.h"

namespace mc::check {

// The compilers, and the substitute for libcudart.
struct Tools {
  compile::CudaRuntime runtime;
  std::filesystem::path client;
  std::filesystem::path executor;
};

// A flag of nvcc, for lines of host code in findings.
inline constexpr const char* kHostLines = "-Xcompiler=-g1";
// Flags of nvcc for device code that a linker would put together: kRefusal says why not.
inline constexpr const char* kRelocatable[] = {
    "-rdc=true", "--relocatable-device-code=true", "-dc", "--device-c", "-dlink", "--device-link"};
inline constexpr const char* kRefusal =
    "relocatable device code (nested launches, device code of several files) is not linked";
inline constexpr const char* kExecutor = "libmc_ptx_executor.so";

// Builds the missing tools once.  kUnavailable says what to install.
Result<Tools> find_tools(const Layout& layout, const compile::Progress& progress);

struct Compiled {
  bool succeeded = false;
  std::string printed;  // The output of the compiler.
};

// Compiles sources to an executable in its own folder.  An Error means that the compiler could not
// be run.
Result<Compiled> compile_program(const Tools& tools,
                                 const std::vector<std::filesystem::path>& sources,
                                 const std::vector<std::string>& nvcc_flags,
                                 const std::filesystem::path& executable);

struct RunOptions {
  std::vector<std::string> arguments;
  uint64_t seed = 0;
  double timeout_s = 60;                    // Wall-clock time.
  int64_t memory_bytes = int64_t{8} << 30;  // The limit of the program, and of the device.
  bool counts = false;                      // True: Checked has a profile.
  std::function<void(bool is_error, std::string_view text)> on_output;
};

struct Checked {
  sandbox::Ending ending;  // The end of the program itself.
  std::vector<task::KernelFinding> findings;
  // Requested features that the device lacks: the findings are then incomplete.
  std::vector<std::string> unsupported;
  int64_t launches = 0;
  std::string profile;  // A line of JSON for each kernel: DeviceReport.
};

// Makes the folder, with our library under the names of those whose place it takes.
Status link_libraries(const Tools& tools, const std::filesystem::path& folder);

// Runs it in the sandbox, in this process's folder, which it may write.
Result<Checked> check_program(const Tools& tools, const std::filesystem::path& executable,
                              const RunOptions& options);

}  // namespace mc::check

#endif  // MC_CHECK_PROGRAM_H_
