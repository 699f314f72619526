// SPDX-License-Identifier: Apache-2.0
#include "compile/build.h"

#include <gtest/gtest.h>

#include "core/file.h"

namespace mc::compile {
namespace {

TEST(Build, RunsCompilersAtItsNiceness) {
  const auto directory = TemporaryDirectory::create("mc-build-test");
  ASSERT_TRUE(directory);
  const CompileLimits limits;
  const Build build{directory->path(), {}, limits, true};
  const auto run = run_in_sandbox(build, {"/usr/bin/nice"});
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(std::get<ToolRun>(*run).out, "19\n");
}

}  // namespace
}  // namespace mc::compile
