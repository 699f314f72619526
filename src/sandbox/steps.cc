// SPDX-License-Identifier: Apache-2.0
#include "sandbox/steps.h"

#include <algorithm>

namespace mc::sandbox {

Status Steps::take(Protection protection, const std::function<Status()>& step) {
  if (std::ranges::count(profile_.off, protection) != 0) {
    missing_.push_back({protection, "switched off by the profile"});
    return ok();
  }
  const Status status = step();
  return status ? ok() : fail(protection, status.error().message);
}

Status Steps::skip(Protection protection, const std::string& why) {
  return take(protection, [&]() -> Status { return Error{ErrorCode::kUnavailable, why}; });
}

bool Steps::has(Protection protection) const {
  return std::ranges::none_of(
      missing_, [&](const Missing& missing) { return missing.protection == protection; });
}

Status Steps::fail(Protection protection, const std::string& why) {
  if (std::ranges::count(profile_.optional, protection) == 0) {
    return Error{ErrorCode::kUnavailable,
                 "protection " + std::string(name_of(protection)) + ": " + why +
                     " (run musacoder doctor, which names what to change)"};
  }
  missing_.push_back({protection, why});
  return ok();
}

}  // namespace mc::sandbox
