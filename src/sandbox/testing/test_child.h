// SPDX-License-Identifier: Apache-2.0
//
// For tests: runs a few lines of C++ in the sandbox and returns how they ended.
#ifndef MC_SANDBOX_TESTING_TEST_CHILD_H_
#define MC_SANDBOX_TESTING_TEST_CHILD_H_

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "sandbox/child.h"
#include "sandbox/tree.h"

namespace mc::sandbox {

inline constexpr std::chrono::seconds kTestTimeMax{20};

inline Child::Clock::time_point test_deadline() { return Child::Clock::now() + kTestTimeMax; }

// The error's text where the sandbox cannot be entered.
inline std::string ending_inside(const Profile& profile, const std::function<int()>& body) {
  auto child = Child::start(profile, {}, [&](const auto&) { return body(); });
  return child ? describe(child->wait(test_deadline())) : child.error().message;
}

// True if `fact` returns true inside.
inline bool holds_inside(const Profile& profile, const std::function<bool()>& fact) {
  return ending_inside(profile, [&] { return fact() ? 0 : 1; }) == "exit code 0";
}

// True if all threads of all descendants of `init` are stopped eventually, according to /proc.
inline bool comes_to_rest(pid_t init) {
  const auto all_stopped = [&] {
    const std::vector<pid_t> pids = descendants(init);
    for (const pid_t pid : pids) {
      const std::string folder = "/proc/" + std::to_string(pid) + "/task";
      for (const auto& task : std::filesystem::directory_iterator(folder)) {
        std::ifstream stat(task.path() / "stat");
        std::string id;
        std::string name;
        char state = 0;
        stat >> id >> name >> state;
        if (state != 'T') return false;
      }
    }
    return !pids.empty();
  };
  for (const auto deadline = test_deadline(); !all_stopped(); std::this_thread::yield()) {
    if (Child::Clock::now() > deadline) return false;
  }
  return true;
}

}  // namespace mc::sandbox

#endif  // MC_SANDBOX_TESTING_TEST_CHILD_H_
