// SPDX-License-Identifier: Apache-2.0
#include "sandbox/protection.h"

#include "core/check.h"

namespace mc::sandbox {

namespace {

// The names in the order of the enumerators.
constexpr std::array<std::string_view, kAllProtections.size()> kNames = {
    "user_namespace", "pid_namespace", "mount_namespace", "read_only_root",    "private_tmp",
    "private_proc",   "minimal_dev",   "hidden_paths",    "network_namespace", "ipc_namespace",
    "uts_namespace",  "process_limit", "no_capabilities", "seccomp",           "measured_use"};
static_assert(kAllProtections.back() == Protection::kMeasuredUse &&
              kNames.back() == "measured_use");

}  // namespace

std::string_view name_of(Protection protection) {
  const auto index = static_cast<size_t>(protection);
  MC_CHECK(index < kNames.size() && kAllProtections[index] == protection);
  return kNames[index];
}

std::optional<Protection> protection_named(std::string_view name) {
  for (const Protection protection : kAllProtections) {
    if (name_of(protection) == name) return protection;
  }
  return std::nullopt;
}

}  // namespace mc::sandbox
