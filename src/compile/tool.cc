// SPDX-License-Identifier: Apache-2.0
#include "compile/tool.h"

#include <cerrno>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include "core/check.h"
#include "core/fd.h"
#include "core/file.h"

extern char** environ;

namespace mc::compile {
namespace {

Result<std::string> read_all(const Fd& fd) {
  std::string text;
  char block[4096];
  ::lseek(fd.get(), 0, SEEK_SET);
  for (ssize_t size = 0; (size = ::read(fd.get(), block, sizeof block)) > 0;) {
    text.append(block, static_cast<size_t>(size));
  }
  return text;
}

Result<int> run_to_end(const std::vector<std::string>& argv, const Fd& out, const Fd& err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, err.get(), 2);
  std::vector<char*> pointers;
  for (const std::string& argument : argv) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  pid_t pid = -1;
  errno = ::posix_spawnp(&pid, pointers[0], &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (errno != 0) return system_error(ErrorCode::kUnavailable, "cannot start " + argv[0]);
  int status = 0;
  pid_t ended = -1;
  do {
    ended = ::waitpid(pid, &status, 0);
  } while (ended < 0 && errno == EINTR);
  // The parent process ignores SIGCHLD, so there is no exit status.
  if (ended != pid) return system_error(ErrorCode::kUnavailable, "cannot wait for " + argv[0]);
  return status;
}

}  // namespace

Result<std::string> run_tool(const std::vector<std::string>& argv, size_t tail_bytes) {
  MC_CHECK(!argv.empty() && !argv[0].empty());
  MC_TRY(const Fd out, make_growing_memfd("tool-out"), "run " + argv[0]);
  MC_TRY(const Fd err, make_growing_memfd("tool-err"), "run " + argv[0]);
  spdlog::debug("run: {}", fmt::join(argv, " "));
  MC_TRY(const int status, run_to_end(argv, out, err), "run");
  spdlog::debug("run: {} ended with status {}", argv[0], status);
  MC_TRY(std::string complaint, read_all(err), "run");
  if (status != 0) {
    if (complaint.size() > tail_bytes) complaint.erase(0, complaint.size() - tail_bytes);
    return Error{ErrorCode::kUnavailable, argv[0] + " failed: " + complaint};
  }
  return read_all(out);
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
