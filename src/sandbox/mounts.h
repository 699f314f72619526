// SPDX-License-Identifier: Apache-2.0
//
// The sandboxed process's view of the file system.  Built once, by process 1 of the new namespaces,
// while it still has its capabilities there.
#ifndef MC_SANDBOX_MOUNTS_H_
#define MC_SANDBOX_MOUNTS_H_

#include "core/result.h"
#include "sandbox/profile.h"
#include "sandbox/steps.h"

namespace mc::sandbox {

// Makes every inherited mount private and read-only, or replaces them all by an empty root
// (Profile::only_visible).  Then mounts the private /tmp, /proc and /dev, and the hidden, visible
// and writable paths over it.  Each protection is one step of `steps`; the empty root belongs to
// kHiddenPaths.  REQUIRES: a mount namespace of its own.
Status build_view(const Profile& profile, Steps& steps);

// Makes /proc read-only, after the last setting has been written there.
Status seal_view(const Steps& steps);

}  // namespace mc::sandbox

#endif  // MC_SANDBOX_MOUNTS_H_
