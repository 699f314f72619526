// SPDX-License-Identifier: Apache-2.0
//
// Starts trusted programs of this machine outside of the sandbox, and waits for their ends
// (sandbox/run.h is for all others).
//
//   MC_TRY(const pid_t pid, start_program({.argv = {"nvcc", "--version"}}), "nvcc");
//   MC_TRY(const int status, wait_for_end(pid), "nvcc");  // As of waitpid(2).
#ifndef MC_CORE_PROCESS_H_
#define MC_CORE_PROCESS_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"

namespace mc {

// The words in the form that execve(2) takes, with a null pointer at the end.  REQUIRES: the words
// outlive the result.
std::vector<char*> pointers_to(const std::vector<std::string>& words);

struct Program {
  std::vector<std::string> argv;  // The first word is a path, or a name that PATH leads to.
  // Descriptors of this process, each with its number in the program.
  std::vector<std::pair<int, int>> descriptors{};
  bool has_input = true;  // False: its standard input is /dev/null.
  // True: it has a process group of its own, which Ctrl-C in a terminal does not reach.
  bool has_own_group = false;
  // "NAME=value"; absent: this process's environment.
  std::optional<std::vector<std::string>> environment{};
};

// kUnavailable where there is no such program.  REQUIRES: argv is not empty.
Result<pid_t> start_program(const Program& program);

// Waits for the end of a child, and returns its status in the form of waitpid(2).  kUnavailable
// where there is none, for example because this process ignores SIGCHLD.
Result<int> wait_for_end(pid_t pid);

}  // namespace mc

#endif  // MC_CORE_PROCESS_H_
