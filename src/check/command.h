// SPDX-License-Identifier: Apache-2.0
//
// Runs a command that builds and runs CUDA programs, such as `make test`, with a substitute for
// nvcc that builds programs that check themselves (docs/check.md).
//
//   MC_TRY(const CommandChecked done, check_command(tools, {"make", "test"}), "check");
#ifndef MC_CHECK_COMMAND_H_
#define MC_CHECK_COMMAND_H_

#include <filesystem>
#include <string>
#include <vector>

#include "check/program.h"
#include "core/result.h"

namespace mc::check {

// The environment variables through which the command's programs are checked: the client's
// constructor (device/client/cudart.cc) runs the program again as `$MC_CHECK_PROGRAM check
// --program ...`, which writes its findings to a file in $MC_CHECK_REPORTS.
inline constexpr const char* kProgramVariable = "MC_CHECK_PROGRAM";
inline constexpr const char* kReportsVariable = "MC_CHECK_REPORTS";
inline constexpr const char* kClientVariable = "MC_CHECK_CLIENT";  // The path of Tools::client.

// Makes a substitute for CUDA's folder: bin/nvcc, include, lib64.
Status make_toolkit(const Tools& tools, const std::filesystem::path& folder);

// The tools for a program of such a command, in whose environment CUDA is the substitute.
Tools tools_of_command(const Layout& layout);

// Runs the command unchanged, outside of the sandbox, and waits for it.  `reports` is the folder
// for the findings of its programs' checks.  The result is its exit code, or 128 plus the signal's
// number.
Result<int> run_command(const Tools& tools, const std::vector<std::string>& words,
                        const std::filesystem::path& toolkit, const std::filesystem::path& reports);

}  // namespace mc::check

#endif  // MC_CHECK_COMMAND_H_
