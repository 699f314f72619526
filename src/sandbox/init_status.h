// SPDX-License-Identifier: Apache-2.0
//
// How init passes on the way its child ended, in the eight bits that an exit status has:
// 0–127 an exit code (a greater one is told as 127), 128+n death by signal n.  So a signal is never
// mistaken for an exit, nor an exit for a signal.
#ifndef MC_SANDBOX_INIT_STATUS_H_
#define MC_SANDBOX_INIT_STATUS_H_

#include <sys/wait.h>

#include <algorithm>
#include <variant>

namespace mc::sandbox {

struct Exited {
  int code = 0;
};
struct Signaled {
  int signal = 0;
};

// From waitpid()'s status of the sandboxed process to init's exit status.
inline int encode_init_status(int wait_status) {
  if (WIFSIGNALED(wait_status)) return 128 + WTERMSIG(wait_status);
  return std::min(WEXITSTATUS(wait_status), 127);
}

inline std::variant<Exited, Signaled> decode_init_status(int exit_status) {
  if (exit_status > 128) return Signaled{exit_status - 128};
  return Exited{exit_status};
}

}  // namespace mc::sandbox

#endif  // MC_SANDBOX_INIT_STATUS_H_
