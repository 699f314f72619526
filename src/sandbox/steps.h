// SPDX-License-Identifier: Apache-2.0
//
// Steps: tries protections one by one and records those that are not in force.
//
//   Steps steps(profile);
//   MC_TRY_VOID(steps.take(Protection::kUtsNamespace, [] { return unshare_uts(); }), "sandbox");
//   for (const Missing& missing : steps.missing()) …
#ifndef MC_SANDBOX_STEPS_H_
#define MC_SANDBOX_STEPS_H_

#include <functional>
#include <string>
#include <vector>

#include "core/result.h"
#include "sandbox/profile.h"
#include "sandbox/protection.h"

namespace mc::sandbox {

class Steps {
 public:
  // Keeps a reference to `profile`.
  explicit Steps(const Profile& profile, std::vector<Missing> missing = {})
      : profile_(profile), missing_(std::move(missing)) {}

  // Runs `step` unless the profile switches the protection off.  A failure is an error unless the
  // profile makes the protection optional.
  Status take(Protection protection, const std::function<Status()>& step);

  // Records that `protection` cannot be tried because another one is missing.
  Status skip(Protection protection, const std::string& why);

  bool has(Protection protection) const;
  const std::vector<Missing>& missing() const { return missing_; }

 private:
  Status fail(Protection protection, const std::string& why);

  const Profile& profile_;
  std::vector<Missing> missing_;
};

}  // namespace mc::sandbox

#endif  // MC_SANDBOX_STEPS_H_
