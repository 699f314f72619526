// SPDX-License-Identifier: Apache-2.0
//
// The way into the sandbox: three processes, two of which remain.
// The processes:
//   supervisor … ── a forking process
//                     └─ launcher     unshare_namespaces(); forks; tells init's pid; ends
//                          └─ init        process 1 of the new pid namespace: enter() begins here
//                               └─ sandboxed process   enter() returns here
//
// The launcher's end makes init a child of the supervisor, which is a child subreaper (child.h).
// Init only waits: process 1 ignores the signals that a crash raises, so the crashing process must
// not be process 1.  When the sandboxed process ends, so does init, with the same news
// (init_status.h), and the kernel kills whatever else is left in the namespace.  If the supervisor
// dies, so does init, and with it everything.  Example:
//   auto threshold = unshare_namespaces(profile);                 // In the launcher.
//   if (pid_t init = fork(); init > 0) { tell(init); _exit(0); }
//   auto missing = enter(profile, std::move(*threshold), keep_fds);
//   // Here runs the sandboxed process, or, where `missing` is an error, still init.
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

// Puts the calling process, and its next child, into new namespaces.  kUnavailable says which
// protection this machine cannot give.  REQUIRES: a process forked for this, with one thread.
Result<SandboxHandle> unshare_namespaces(const Profile& profile);

// Forks the sandboxed process off the calling process, which becomes its init and never returns.
// Returns in the sandboxed process, with the protections that are not in force, and with no
// descriptor open but 0, 1, 2 and `keep_fds`.  An error may come back in init as well as in the
// sandboxed process; the caller reports it and exits.  REQUIRES: unshare_namespaces() in the
// parent, which ends soon; one thread.
Result<std::vector<Missing>> enter(const Profile& profile, SandboxHandle threshold,
                                   std::span<const int> keep_fds);

}  // namespace mc::sandbox

#endif  // MC_SANDBOX_ENTER_H_
