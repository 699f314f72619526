// SPDX-License-Identifier: Apache-2.0
//
// Build: what every toolchain does in its working directory: writes the sources, runs compilers on
// them in the sandbox, reads what the library wants from others.
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
#include "task/verdict.h"

namespace mc::compile {

struct Build {
  std::filesystem::path directory;   // Private to this build; the only place it may write.
  std::vector<std::string> visible;  // Paths that compilers read, should they lie below /tmp.
  const CompileLimits& limits;
  std::atomic<int64_t>& cpu_us;  // User and system time of what ran is added here.
  bool stands_back = false;      // For what is timed meanwhile, and for the clock that times it.
};

// A program that ended by itself.
struct ToolRun {
  bool succeeded = false;
  std::string out;
  std::string err;
  std::string ending;  // "exit code 1"
};
using BuildRun = std::variant<ToolRun, task::TimedOut, task::OutOfMemory>;

// Runs a compiler on candidate code.  An Error says that it could not be started.  Thread-safe.
Result<BuildRun> run_in_sandbox(const Build& build, std::vector<std::string> argv);

// The folder with the candidate's own headers, and nothing of ours.
std::filesystem::path headers_in(const Build& build);

// Each piece under its own name for diagnostics (#line).  A header whose name no file can have is
// left out: whoever includes it is told that it is not there.
Status write_sources(const Build& build, const std::vector<Unit>& units,
                     const std::vector<SourceFile>& files);

// The undefined names of the dynamic symbol table.  An Error says that nm could not be started.
Result<Symbols> undefined_symbols(const Build& build, const std::filesystem::path& nm,
                                  const std::filesystem::path& library);

// The outcome of a compiler that failed and named no error, such as one that broke over the source.
// An Error where the disk is full.
Result<task::CompileFailed> unexplained(const char* tool, const ToolRun& run, uintmax_t free);
// The free space of the disk on which a build's directory lies; 0 where it cannot be asked.
uintmax_t free_bytes(const std::filesystem::path& directory);

// Text that compilers print, and all that they tell, when the memory limit stops them.
bool ran_out_of_memory(std::string_view output);

}  // namespace mc::compile

#endif  // MC_COMPILE_BUILD_H_
