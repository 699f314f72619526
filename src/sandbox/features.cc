// SPDX-License-Identifier: Apache-2.0
//
// A child enters the sandbox with every protection optional and writes the missing ones, each as a
// line "name<TAB>why".  Its report can be trusted, since it runs no candidate code.
#include "sandbox/features.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <map>
#include <utility>

#include "core/fd.h"
#include "core/file.h"
#include "sandbox/child.h"
#include "sandbox/profile.h"
#include "sandbox/protection.h"

namespace mc::sandbox {
namespace {

constexpr std::chrono::seconds kProbeTimeMax{20};

bool is_setting(const char* path, char value) {
  const auto text = read_file(path, 64);
  return text && !text->empty() && (*text)[0] == value;
}

bool is_there(const char* path) { return ::access(path, F_OK) == 0; }

// The way to start this container, or, where the kind of container is unknown, some container.
std::string container_remedy() {
  if (std::getenv("KUBERNETES_SERVICE_HOST") != nullptr) {
    return "hostUsers: false, procMount: Unmasked, and seccompProfile and appArmorProfile "
           "Unconfined, as in deploy/kubernetes.yaml";
  }
  if (is_there("/run/.containerenv")) {
    return "podman run --security-opt seccomp=unconfined --security-opt unmask=ALL";
  }
  const std::string options =
      "--security-opt seccomp=unconfined --security-opt apparmor=unconfined "
      "--security-opt systempaths=unconfined";
  if (is_there("/.dockerenv")) return "docker run " + options;
  return "a filter or a container around this process forbids namespaces or mounts: leave "
         "RestrictNamespaces and SystemCallFilter out of its systemd unit, or docker run " +
         options;
}

// The setting that keeps ordinary users from namespaces differs by distribution.
std::string namespace_remedy() {
  if (is_setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1')) {
    return "on the host: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0";
  }
  if (is_setting("/proc/sys/kernel/unprivileged_userns_clone", '0')) {
    return "on the host: sudo sysctl -w kernel.unprivileged_userns_clone=1";
  }
  if (is_setting("/proc/sys/user/max_user_namespaces", '0')) {
    return "on the host: sudo sysctl -w user.max_user_namespaces=15000";
  }
  return container_remedy();
}

// Without a user namespace the other namespaces and everything in them are missing, too.
std::string remedy_for(Protection protection, bool lacks_namespaces) {
  if (protection == Protection::kProcessLimit) {
    return "run as an ordinary user, or with Linux 6.14 or newer";
  }
  if (protection == Protection::kMeasuredUse) return "sudo mount -o remount,hidepid=0 /proc";
  if (lacks_namespaces) return namespace_remedy();
  if (protection == Protection::kSeccomp) return "a kernel with CONFIG_SECCOMP_FILTER";
  if (protection == Protection::kNoCapabilities) return "a kernel with PR_SET_NO_NEW_PRIVS";
  return namespace_remedy();
}

using Reasons = std::map<std::string, std::string>;

Reasons parse_report(const std::string& text) {
  Reasons reasons;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const size_t tab = std::min(text.find('\t', begin), end);
    reasons[text.substr(begin, tab - begin)] = text.substr(std::min(tab + 1, end), end - tab - 1);
    begin = end + 1;
  }
  return reasons;
}

std::vector<Feature> features_from(const Reasons& reasons) {
  const std::vector<Protection> optional = Profile{}.optional;
  const bool lacks_namespaces = reasons.contains(std::string(name_of(Protection::kUserNamespace)));
  std::vector<Feature> features;
  for (const Protection protection : kAllProtections) {
    const std::string name(name_of(protection));
    const bool is_needed = std::ranges::find(optional, protection) == optional.end();
    const auto reason = reasons.find(name);
    features.push_back(reason == reasons.end() ? Feature{name, true, is_needed, "", ""}
                                               : Feature{name, false, is_needed, reason->second,
                                                         remedy_for(protection, lacks_namespaces)});
  }
  return features;
}

std::vector<Feature> none_available(const std::string& why) {
  Reasons reasons;
  for (const Protection protection : kAllProtections) {
    reasons.emplace(name_of(protection), why);
  }
  return features_from(reasons);
}

}  // namespace

std::vector<Feature> probe() {
  auto pipe = make_pipe();
  if (!pipe) return none_available(pipe.error().message);
  const int report = pipe->writer.get();
  Profile profile;
  profile.only_visible = true;  // The view of sandboxed processes.
  auto child = Child::start(
      lenient(std::move(profile)), std::array{report}, [&](const std::vector<Missing>& missing) {
        for (const auto& [protection, why] : missing) {
          dprintf(report, "%s\t%s\n", name_of(protection).data(), why.c_str());
        }
        return 0;
      });
  pipe->writer.reset();
  if (!child) return none_available(child.error().message);
  child->wait(Child::Clock::now() + kProbeTimeMax);
  return features_from(parse_report(read_to_end(pipe->reader)));
}

}  // namespace mc::sandbox
