// SPDX-License-Identifier: Apache-2.0
#include "sandbox/protection.h"

#include "core/check.h"

namespace mc::sandbox {

std::string_view name_of(Protection protection) {
  switch (protection) {
    case Protection::kUserNamespace:
      return "user_namespace";
    case Protection::kPidNamespace:
      return "pid_namespace";
    case Protection::kMountNamespace:
      return "mount_namespace";
    case Protection::kReadOnlyRoot:
      return "read_only_root";
    case Protection::kPrivateTmp:
      return "private_tmp";
    case Protection::kPrivateProc:
      return "private_proc";
    case Protection::kMinimalDev:
      return "minimal_dev";
    case Protection::kHiddenPaths:
      return "hidden_paths";
    case Protection::kNetworkNamespace:
      return "network_namespace";
    case Protection::kIpcNamespace:
      return "ipc_namespace";
    case Protection::kUtsNamespace:
      return "uts_namespace";
    case Protection::kProcessLimit:
      return "process_limit";
    case Protection::kNoCapabilities:
      return "no_capabilities";
    case Protection::kSeccomp:
      return "seccomp";
  }
  MC_CHECK(false);
}

std::optional<Protection> protection_named(std::string_view name) {
  for (const Protection protection : kAllProtections) {
    if (name_of(protection) == name) return protection;
  }
  return std::nullopt;
}

}  // namespace mc::sandbox
