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

// The kinds of device/ptx_driver/report.cc; the test states which of them end a launch.
TEST(EndsKernel, HoldsForTheKindsThatEndALaunchOnTheDevice) {
  for (const char* ending : {"out_of_bounds_read", "out_of_bounds_write", "misaligned", "deadlock",
                             "device_assert", "step_limit", "launch_error"}) {
    EXPECT_TRUE(ends_kernel({ending, "k", {}, {}, "", {}})) << ending;
  }
  for (const char* noted :
       {"shared_race", "global_race", "uninitialised_shared", "uninitialised_global"}) {
    EXPECT_FALSE(ends_kernel({noted, "k", {}, {}, "", {}})) << noted;
  }
}

}  // namespace
}  // namespace mc::task
