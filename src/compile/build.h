// SPDX-License-Identifier: Apache-2.0
//
// Build: the steps that all toolchains share in a working directory: writing the sources, running
// compilers on them in the sandbox, and reading the undefined symbols of the library.
#ifndef MC_COMPILE_BUILD_H_
#define MC_COMPILE_BUILD_H_

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compile/extension.h"
#include "compile/toolchain.h"
#include "core/result.h"
#include "task/outcome.h"

namespace mc::compile {

struct Build {
  std::filesystem::path directory;   // Private to this build, and the only writable folder.
  std::vector<std::string> visible;  // Paths that compilers read; they may be below /tmp.
  const CompileLimits& limits;
  std::atomic<int64_t>& cpu_us;  // Receives the added user and system time of all programs.
  bool stands_back = false;      // True: runs at low priority, so that timing is not disturbed.
};

// The result of a program that exited by itself.
struct ToolRun {
  bool succeeded = false;
  std::string out;
  std::string err;
  std::string ending;  // "exit code 1"
};
using BuildRun = std::variant<ToolRun, task::TimedOut, task::OutOfMemory>;

// Runs a compiler on candidate code.  An Error means that it could not be started.  Thread-safe.
Result<BuildRun> run_in_sandbox(const Build& build, std::vector<std::string> argv);

// The folder that contains only the candidate's own headers.
std::filesystem::path headers_in(const Build& build);

// Writes each piece under its own name for diagnostics (#line).  A header with a name that no file
// can have is left out: the compiler then reports it as missing.
Status write_sources(const Build& build, const std::vector<Unit>& units,
                     const std::vector<SourceFile>& files);

// The undefined names of the dynamic symbol table.  An Error means that nm could not be started.
Result<Symbols> undefined_symbols(const Build& build, const std::filesystem::path& nm,
                                  const std::filesystem::path& library);

// The outcome of a compiler that failed without an error message, for example by an internal error.
// An Error where the disk is full.
Result<task::CompileFailed> unexplained(const char* tool, const ToolRun& run, uintmax_t free);
// The free space of the disk that contains a build's directory; 0 where it is unknown.
uintmax_t free_bytes(const std::filesystem::path& directory);

// True for the messages that compilers print, often as their only ones, at the memory limit.
bool ran_out_of_memory(std::string_view output);

}  // namespace mc::compile

#endif  // MC_COMPILE_BUILD_H_
