// SPDX-License-Identifier: Apache-2.0
#include "core/process.h"

#include <cerrno>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/check.h"
#include "core/fd.h"

extern char** environ;

namespace mc {

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

Result<pid_t> start_program(const Program& program) {
  MC_CHECK(!program.argv.empty());
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (!program.has_input) {
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  for (const auto& [own, its] : program.descriptors) {
    MC_CHECK(own >= 0 && its >= 0);
    // Equal numbers clear the flag close-on-exec.
    ::posix_spawn_file_actions_adddup2(&actions, own, its);
  }
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  if (program.has_own_group) ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);

  const std::vector<char*> argv = pointers_to(program.argv);
  std::vector<char*> own_environment;
  if (program.environment) own_environment = pointers_to(*program.environment);
  pid_t pid = -1;
  errno = ::posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(),
                         program.environment ? own_environment.data() : environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (errno != 0) return system_error(ErrorCode::kUnavailable, "cannot start " + program.argv[0]);
  MC_CHECK(pid > 0);  // Signals to 0 or -1 would reach other processes.
  return pid;
}

Result<int> wait_for_end(pid_t pid) {
  MC_CHECK(pid > 0);
  int status = 0;
  pid_t ended = -1;
  do {
    ended = ::waitpid(pid, &status, 0);
  } while (ended < 0 && errno == EINTR);
  if (ended != pid) return system_error(ErrorCode::kUnavailable, "cannot wait for a program");
  return status;
}

}  // namespace mc
