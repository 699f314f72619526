// SPDX-License-Identifier: Apache-2.0
//
// The system-call filter.  What is refused fails with EPERM, so that candidate code sees an
// ordinary error; clone3 fails with ENOSYS, so that the C library falls back to clone, whose flags
// a filter can read.  A foreign architecture's calls kill the process.
#ifndef MC_SANDBOX_SYSCALLS_H_
#define MC_SANDBOX_SYSCALLS_H_

#include "core/result.h"
#include "sandbox/profile.h"

namespace mc::sandbox {

// Loads the filter into the calling process for good; sets no_new_privs.
// REQUIRES: a single-threaded process.
Status filter_syscalls(const Profile& profile);

}  // namespace mc::sandbox

#endif  // MC_SANDBOX_SYSCALLS_H_
