// SPDX-License-Identifier: Apache-2.0
//
// The encoding in which init passes its child's end on, in the eight bits of an exit status: 0–127
// is an exit code (a greater one becomes 127), 128+n is death by signal n.  So a signal is never
// mistaken for an exit code, nor the reverse.
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

// Converts waitpid()'s status of the sandboxed process to init's exit status.
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
