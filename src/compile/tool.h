// SPDX-License-Identifier: Apache-2.0
//
// Runs a trusted tool of the machine (python, g++ on our own sources), outside the sandbox and with
// the user's environment.  Never used for candidate code.
#ifndef MC_COMPILE_TOOL_H_
#define MC_COMPILE_TOOL_H_

#include <filesystem>
#include <string>
#include <vector>

#include "core/result.h"

namespace mc::compile {

using Flags = std::vector<std::string>;
void append(Flags& flags, const Flags& more);
// A text for hashes, which differs wherever the flags do.
std::string joined(const Flags& flags);

// The tool's standard output.  kUnavailable, with the last `tail_bytes` of its standard error, when
// it cannot be started or fails.
Result<std::string> run_tool(const std::vector<std::string>& argv, size_t tail_bytes = 2000);

// The path of g++, nm and the like in the folders of distributions.  kUnavailable says what to
// install.
Result<std::filesystem::path> find_program(const std::string& name);

}  // namespace mc::compile

#endif  // MC_COMPILE_TOOL_H_
