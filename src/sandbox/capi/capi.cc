// SPDX-License-Identifier: Apache-2.0
#include "sandbox/capi/capi.h"

#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "sandbox/enter.h"
#include "sandbox/memory.h"
#include "sandbox/profile.h"

namespace {

using mc::Result;
using mc::sandbox::Profile;
using mc::sandbox::SandboxHandle;

// State of this process: there is a fork between the two calls, so the caller cannot pass it.
std::optional<SandboxHandle> g_handle;
std::string g_missing = "[]";

int report(const std::string& message, char* error, int error_size) {
  if (error_size > 0) {
    std::snprintf(error, static_cast<size_t>(error_size), "%s", message.c_str());
  }
  return -1;
}

std::string missing_json(const std::vector<mc::sandbox::Missing>& missing) {
  auto list = nlohmann::json::array();
  for (const auto& [protection, why] : missing) {
    list.push_back({{"protection", mc::sandbox::name_of(protection)}, {"why", why}});
  }
  return list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

mc::Status leave(const char* profile_json) {
  MC_TRY(const Profile profile, mc::sandbox::parse_profile(profile_json), "sandbox");
  MC_TRY(g_handle, mc::sandbox::unshare_namespaces(profile), "sandbox");
  return mc::ok();
}

mc::Status enter(const char* profile_json, std::span<const int> keep_fds) {
  if (!g_handle) {
    return mc::Error{mc::ErrorCode::kInvalidInput, "mc_sandbox_unshare() was not called"};
  }
  MC_TRY(const Profile profile, mc::sandbox::parse_profile(profile_json), "sandbox");
  MC_TRY(const auto missing, mc::sandbox::enter(profile, std::move(*g_handle), keep_fds),
         "sandbox");
  g_handle.reset();
  g_missing = missing_json(missing);
  return mc::ok();
}

}  // namespace

extern "C" void mc_sandbox_compact_memory(void) { mc::sandbox::compact_memory(); }

extern "C" int mc_sandbox_unshare(const char* profile_json, char* error, int error_size) {
  try {
    const mc::Status status = leave(profile_json);
    return status ? 0 : report(status.error().message, error, error_size);
  } catch (const std::exception& exception) {
    return report(exception.what(), error, error_size);
  }
}

extern "C" int mc_sandbox_enter(const char* profile_json, const int* keep_fds, int num_keep,
                                char* error, int error_size) {
  try {
    const mc::Status status = enter(profile_json, {keep_fds, static_cast<size_t>(num_keep)});
    return status ? 0 : report(status.error().message, error, error_size);
  } catch (const std::exception& exception) {
    return report(exception.what(), error, error_size);
  }
}

extern "C" const char* mc_sandbox_missing(void) { return g_missing.c_str(); }
