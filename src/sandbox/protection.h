// SPDX-License-Identifier: Apache-2.0
//
// Protection: one restriction of a sandboxed process, by name.
//
// A machine may lack one of them (no user namespaces, no seccomp …).  A profile names those that
// may be left out; each one that is left out is reported as Missing.
#ifndef MC_SANDBOX_PROTECTION_H_
#define MC_SANDBOX_PROTECTION_H_

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace mc::sandbox {

enum class Protection {
  kUserNamespace,     // No privileges outside; ordinary users need it for all other namespaces.
  kPidNamespace,      // Only its own processes are visible; the tree dies with init.
  kMountNamespace,    // Needed by the next four.
  kReadOnlyRoot,      // Every inherited mount is read-only.
  kPrivateTmp,        // /tmp, /var/tmp and /dev/shm are one size-limited tmpfs.
  kPrivateProc,       // /proc shows the sandbox's own processes, read-only.
  kMinimalDev,        // /dev holds null, zero, full, random, urandom and what the profile adds.
  kHiddenPaths,       // Well-known paths of secrets are empty.
  kNetworkNamespace,  // No interface but, where the profile allows sockets, its own loopback.
  kIpcNamespace,      // No access to other processes' System V and POSIX queues and segments.
  kUtsNamespace,      // The host's name is hidden.
  kProcessLimit,      // The kernel itself bounds the number of tasks.
  kNoCapabilities,    // No capabilities, and no way to gain any; no_new_privs.
  kSeccomp,           // System calls that candidates do not need fail with EPERM.
  kMeasuredUse,       // The supervisor sees the memory and the threads that processes use.
};

inline constexpr std::array kAllProtections = {
    Protection::kUserNamespace,  Protection::kPidNamespace, Protection::kMountNamespace,
    Protection::kReadOnlyRoot,   Protection::kPrivateTmp,   Protection::kPrivateProc,
    Protection::kMinimalDev,     Protection::kHiddenPaths,  Protection::kNetworkNamespace,
    Protection::kIpcNamespace,   Protection::kUtsNamespace, Protection::kProcessLimit,
    Protection::kNoCapabilities, Protection::kSeccomp,      Protection::kMeasuredUse,
};

// The name used in JSON and shown to users, e.g. "read_only_root".
std::string_view name_of(Protection protection);
std::optional<Protection> protection_named(std::string_view name);

// A protection that is not in force, and why.
struct Missing {
  Protection protection;
  std::string why;
};

}  // namespace mc::sandbox

#endif  // MC_SANDBOX_PROTECTION_H_
