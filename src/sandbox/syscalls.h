// SPDX-License-Identifier: Apache-2.0
//
// The system-call filter.  A forbidden call fails with EPERM, so that candidate code sees an
// ordinary error; clone3 fails with ENOSYS, so that the C library falls back to clone, whose flags
// a filter can read.  A call of another architecture kills the process.
#ifndef MC_SANDBOX_SYSCALLS_H_
#define MC_SANDBOX_SYSCALLS_H_

#include "core/result.h"
#include "sandbox/profile.h"

namespace mc::sandbox {

// Loads the filter into the calling process permanently; sets no_new_privs.  REQUIRES: a
// single-threaded process.
Status filter_syscalls(const Profile& profile);

}  // namespace mc::sandbox

#endif  // MC_SANDBOX_SYSCALLS_H_
