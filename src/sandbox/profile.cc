// SPDX-License-Identifier: Apache-2.0
#include "sandbox/profile.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

namespace mc::sandbox {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kNicenessMax = 19;

std::vector<std::string> names_of(const std::vector<Protection>& protections) {
  std::vector<std::string> names;
  for (const Protection protection : protections) names.emplace_back(name_of(protection));
  return names;
}

Error bad_member(const std::string& name, const std::string& why) {
  return {ErrorCode::kInvalidInput, "sandbox profile: \"" + name + "\" " + why};
}

Status read(const Json& json, const std::string& name, uint64_t& value) {
  if (!json.is_number_unsigned()) return bad_member(name, "is not a whole number");
  value = json.get<uint64_t>();
  return ok();
}

template <typename Rep, typename Period>
Status read(const Json& json, const std::string& name, std::chrono::duration<Rep, Period>& value) {
  uint64_t count = 0;
  if (auto status = read(json, name, count); !status) return status;
  if (count == 0 || count > 1'000'000'000) return bad_member(name, "is out of range");
  value = std::chrono::duration<Rep, Period>(static_cast<Rep>(count));
  return ok();
}

Status read_niceness(const Json& json, const std::string& name, int& value) {
  uint64_t count = 0;
  if (auto status = read(json, name, count); !status) return status;
  if (count > kNicenessMax) return bad_member(name, "is out of range");
  value = static_cast<int>(count);
  return ok();
}

Status read(const Json& json, const std::string& name, bool& value) {
  if (!json.is_boolean()) return bad_member(name, "is not true or false");
  value = json.get<bool>();
  return ok();
}

Status read(const Json& json, const std::string& name, std::string& path) {
  if (!json.is_string()) return bad_member(name, "is not text");
  path = json.get<std::string>();
  if (!path.empty() && path[0] != '/') return bad_member(name, "is a relative path: " + path);
  return ok();
}

Status read(const Json& json, const std::string& name, std::vector<std::string>& paths) {
  if (!json.is_array()) return bad_member(name, "is not a list");
  paths.clear();
  for (const Json& item : json) {
    if (!item.is_string()) return bad_member(name, "holds something that is not text");
    auto path = item.get<std::string>();
    if (path.empty() || path[0] != '/') return bad_member(name, "holds a relative path: " + path);
    paths.push_back(std::move(path));
  }
  return ok();
}

Status read(const Json& json, const std::string& name, std::vector<Protection>& protections) {
  if (!json.is_array()) return bad_member(name, "is not a list");
  protections.clear();
  for (const Json& item : json) {
    const auto protection =
        item.is_string() ? protection_named(item.get<std::string>()) : std::nullopt;
    if (!protection) return bad_member(name, "holds an unknown protection: " + item.dump());
    protections.push_back(*protection);
  }
  return ok();
}

Status read(const Json& json, const std::string& name, Limits& limits) {
  if (!json.is_object()) return bad_member(name, "is not an object");
  for (const auto& [key, value] : json.items()) {
    Status status = key == "cpu_s"            ? read(value, key, limits.cpu)
                    : key == "wall_ms"        ? read(value, key, limits.wall)
                    : key == "memory_bytes"   ? read(value, key, limits.memory_bytes)
                    : key == "reserved_bytes" ? read(value, key, limits.reserved_bytes)
                    : key == "file_bytes_max" ? read(value, key, limits.file_bytes_max)
                    : key == "files_max"      ? read(value, key, limits.files_max)
                    : key == "threads_max"    ? read(value, key, limits.threads_max)
                    : key == "tmp_bytes"      ? read(value, key, limits.tmp_bytes)
                    : key == "niceness"       ? read_niceness(value, key, limits.niceness)
                                              : Status(bad_member(key, "is unknown"));
    if (!status) return status;
  }
  return ok();
}

Status read_members(const Json& json, Profile& profile) {
  for (const auto& [key, value] : json.items()) {
    Status status = key == "limits"          ? read(value, key, profile.limits)
                    : key == "allow_sockets" ? read(value, key, profile.allow_sockets)
                    : key == "allow_exec"    ? read(value, key, profile.allow_exec)
                    : key == "allow_fork"    ? read(value, key, profile.allow_fork)
                    : key == "only_visible"  ? read(value, key, profile.only_visible)
                    : key == "artifacts"     ? read(value, key, profile.artifacts)
                    : key == "writable"      ? read(value, key, profile.writable)
                    : key == "visible"       ? read(value, key, profile.visible)
                    : key == "hidden"        ? read(value, key, profile.hidden)
                    : key == "devices"       ? read(value, key, profile.devices)
                    : key == "optional"      ? read(value, key, profile.optional)
                    : key == "off"           ? read(value, key, profile.off)
                                             : Status(bad_member(key, "is unknown"));
    if (!status) return status;
  }
  return ok();
}

// The home directories in use: of the environment, of the current user, and of root.
std::set<std::string> home_directories() {
  std::set<std::string> homes;
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') homes.insert(home);
  for (const uid_t user : {getuid(), uid_t{0}}) {
    if (const passwd* entry = getpwuid(user); entry != nullptr) homes.insert(entry->pw_dir);
  }
  return homes;
}

}  // namespace

std::vector<std::string> secret_paths() {
  static constexpr const char* kBelowHome[] = {
      ".ssh",    ".gnupg",        ".aws",        ".azure",           ".config/gcloud",
      ".kube",   ".docker",       ".netrc",      ".git-credentials", ".config/git/credentials",
      ".pypirc", ".huggingface",  ".npmrc",      ".config/gh",       ".cache/huggingface/token",
      ".pgpass", ".bash_history", ".config/hub",
  };
  std::vector<std::string> paths = {"/run",     "/etc/shadow",  "/etc/gshadow",
                                    "/etc/ssh", "/etc/sudoers", "/var/lib/docker"};
  for (const std::string& home : home_directories()) {
    for (const char* name : kBelowHome) paths.push_back(home + "/" + name);
  }
  return paths;
}

Profile lenient(Profile profile) {
  profile.optional.assign(kAllProtections.begin(), kAllProtections.end());
  return profile;
}

std::string to_json(const Profile& profile) {
  const Limits& limits = profile.limits;
  const Json json = {
      {"limits",
       {{"cpu_s", limits.cpu.count()},
        {"wall_ms", limits.wall.count()},
        {"memory_bytes", limits.memory_bytes},
        {"reserved_bytes", limits.reserved_bytes},
        {"file_bytes_max", limits.file_bytes_max},
        {"files_max", limits.files_max},
        {"threads_max", limits.threads_max},
        {"tmp_bytes", limits.tmp_bytes},
        {"niceness", limits.niceness}}},
      {"allow_exec", profile.allow_exec},
      {"allow_fork", profile.allow_fork},
      {"allow_sockets", profile.allow_sockets},
      {"only_visible", profile.only_visible},
      {"artifacts", profile.artifacts},
      {"writable", profile.writable},
      {"visible", profile.visible},
      {"hidden", profile.hidden},
      {"devices", profile.devices},
      {"optional", names_of(profile.optional)},
      {"off", names_of(profile.off)},
  };
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Profile> parse_profile(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return Error{ErrorCode::kInvalidInput, "sandbox profile: not a JSON object"};
  }
  Profile profile;
  if (auto status = read_members(json, profile); !status) return status.error();
  return profile;
}

}  // namespace mc::sandbox
