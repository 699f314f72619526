// SPDX-License-Identifier: Apache-2.0
#include "task/verdict.h"

#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "core/file.h"

namespace mc::task {
namespace {

TEST(EndsKernel, HoldsForTheKindsWithWhichTheEmulatorEndsAKernel) {
  std::set<std::string> kinds;
  const std::regex ending(R"(fail\(.*?"([a-z_]+)\")");
  const auto folder = std::filesystem::path(MC_SOURCE_DIR) / "emu/runtime";
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".cc") continue;
    const std::string text = read_file(file.path(), size_t{1} << 20).value();
    for (std::sregex_iterator it(text.begin(), text.end(), ending), end; it != end; ++it) {
      kinds.insert((*it)[1]);
    }
  }
  EXPECT_EQ(kinds.erase("unsupported"), 1u);  // It is no fault of the candidate's.
  EXPECT_GE(kinds.size(), 6u);
  for (const std::string& kind : kinds) {
    EXPECT_TRUE(ends_kernel({kind, "k", {}, {}, "", {}})) << kind;
  }
  for (const char* noted : {"shared_race", "global_race", "uninitialised_shared", "host_compute"}) {
    EXPECT_FALSE(ends_kernel({noted, "k", {}, {}, "", {}})) << noted;
  }
}

}  // namespace
}  // namespace mc::task
