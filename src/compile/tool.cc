// SPDX-License-Identifier: Apache-2.0
#include "compile/tool.h"

#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/check.h"
#include "core/fd.h"
#include "core/log.h"
#include "core/process.h"

namespace mc::compile {

void append(Flags& flags, const Flags& more) {
  flags.insert(flags.end(), more.begin(), more.end());
}

std::string joined(const Flags& flags) {
  std::string text;
  for (const std::string& flag : flags) text += flag + '\0';
  return text;
}

Result<std::string> run_tool(const std::vector<std::string>& argv, size_t tail_bytes) {
  MC_CHECK(!argv.empty());
  MC_TRY(const Fd out, make_growing_memfd("tool-out"), "run " + argv[0]);
  MC_TRY(const Fd err, make_growing_memfd("tool-err"), "run " + argv[0]);
  log_debug(fmt::format("run: {}", fmt::join(argv, " ")));
  MC_TRY(const pid_t pid,
         start_program({.argv = argv,
                        .descriptors = {{out.get(), STDOUT_FILENO}, {err.get(), STDERR_FILENO}},
                        .has_input = false}),
         "run");
  MC_TRY(const int status, wait_for_end(pid), "run " + argv[0]);
  log_debug(fmt::format("run: {} ended with status {}", argv[0], status));
  if (status != 0) {
    ::lseek(err.get(), 0, SEEK_SET);
    std::string complaint = read_to_end(err);
    if (complaint.size() > tail_bytes) complaint.erase(0, complaint.size() - tail_bytes);
    return Error{ErrorCode::kUnavailable, argv[0] + " failed: " + complaint};
  }
  ::lseek(out.get(), 0, SEEK_SET);
  return read_to_end(out);
}

Result<std::filesystem::path> find_program(const std::string& name) {
  for (const char* directory : {"/usr/local/bin", "/usr/bin", "/bin"}) {
    std::error_code failure;
    const std::filesystem::path path = std::filesystem::path(directory) / name;
    if (std::filesystem::exists(path, failure)) return path;
  }
  return Error{ErrorCode::kUnavailable, name + " is missing: apt-get install g++ binutils"};
}

}  // namespace mc::compile
