// SPDX-License-Identifier: Apache-2.0
//
// The way into the sandbox: three processes, two of which remain.  The processes:
//   supervisor … ── a forking process
//                     └─ launcher     unshare_namespaces(); forks; sends init's pid; exits
//                          └─ init        process 1 of the new pid namespace: enter() begins here
//                               └─ sandboxed process   enter() returns here
//
// When the launcher exits, init becomes a child of the supervisor, which is a child subreaper
// (child.h).  Init only waits: process 1 ignores the signals that a crash raises, so the crashing
// process must not be process 1.  When the sandboxed process ends, init exits with the same status
// (init_status.h), and the kernel kills all other processes in the namespace.  If the supervisor
// dies, init dies, and with it the whole tree.  Example:
//   auto handle = unshare_namespaces(profile);                 // In the launcher.
//   if (pid_t init = fork(); init > 0) { tell(init); _exit(0); }
//   auto missing = enter(profile, std::move(*handle), keep_fds);
//   // This is the sandboxed process, or, where `missing` is an error, possibly still init.
#ifndef MC_SANDBOX_ENTER_H_
#define MC_SANDBOX_ENTER_H_

#include <sys/types.h>

#include <span>
#include <vector>

#include "core/fd.h"
#include "core/result.h"
#include "sandbox/profile.h"
#include "sandbox/protection.h"

namespace mc::sandbox {

// The state that passes from unshare_namespaces() to enter() through the fork between them.
struct SandboxHandle {
  pid_t launcher = 0;
  uid_t host_uid = 0;
  std::vector<Missing> missing;
};

// Moves the calling process, and its next child, into new namespaces.  kUnavailable names the
// protection that this machine lacks.  REQUIRES: a process with one thread that was forked for
// this.
Result<SandboxHandle> unshare_namespaces(const Profile& profile);

// Forks the sandboxed process off the calling process, which becomes its init and never returns.
// Returns in the sandboxed process, with the protections that are not in force.  Only the
// descriptors 0, 1, 2 and `keep_fds` are open there.  An error may be returned in init as well as
// in the sandboxed process; the caller reports it and exits.  REQUIRES: unshare_namespaces() was
// called in the parent, which ends soon; one thread.
Result<std::vector<Missing>> enter(const Profile& profile, SandboxHandle handle,
                                   std::span<const int> keep_fds);

}  // namespace mc::sandbox

#endif  // MC_SANDBOX_ENTER_H_
