// SPDX-License-Identifier: Apache-2.0
//
// A command that builds and runs CUDA programs, such as `make test`, with an nvcc in its way that
// makes programs which check themselves (docs/check.md).
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

// The environment variables by which the command's programs are checked: the client's constructor
// (device/client/cudart.cc) runs the program again as `$MC_CHECK_PROGRAM check --program ...`,
// which leaves what it found in a file in $MC_CHECK_REPORTS.
inline constexpr const char* kProgramVariable = "MC_CHECK_PROGRAM";
inline constexpr const char* kReportsVariable = "MC_CHECK_REPORTS";
inline constexpr const char* kClientVariable = "MC_CHECK_CLIENT";  // Tools::client

// Makes a folder that stands in for CUDA's: bin/nvcc, include, lib64.
Status make_toolkit(const Tools& tools, const std::filesystem::path& folder);

// The tools of a program that such a command runs, in whose environment CUDA is the stand-in.
Tools tools_of_command(const Layout& layout);

// Runs the command as it is, outside of the sandbox, and waits for it.  `reports` is the folder for
// what its programs' checks find.  The result is its exit code, or 128 and the signal's number.
Result<int> run_command(const Tools& tools, const std::vector<std::string>& words,
                        const std::filesystem::path& toolkit, const std::filesystem::path& reports);

}  // namespace mc::check

#endif  // MC_CHECK_COMMAND_H_
