// SPDX-License-Identifier: Apache-2.0
//
// For tests: runs a few lines of C++ in the sandbox and says how they ended.
#ifndef MC_SANDBOX_TEST_CHILD_H_
#define MC_SANDBOX_TEST_CHILD_H_

#include <chrono>
#include <functional>
#include <string>

#include "sandbox/child.h"

namespace mc::sandbox {

inline constexpr std::chrono::seconds kTestTimeMax{20};

inline Child::Clock::time_point test_deadline() { return Child::Clock::now() + kTestTimeMax; }

// The error's text where the sandbox cannot be entered.
inline std::string ending_inside(const Profile& profile, const std::function<int()>& body) {
  auto child = Child::start(profile, {}, [&](const auto&) { return body(); });
  return child ? describe(child->wait(test_deadline())) : child.error().message;
}

// Holds when `fact` does inside.
inline bool holds_inside(const Profile& profile, const std::function<bool()>& fact) {
  return ending_inside(profile, [&] { return fact() ? 0 : 1; }) == "exit code 0";
}

}  // namespace mc::sandbox

#endif  // MC_SANDBOX_TEST_CHILD_H_
