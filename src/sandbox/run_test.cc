// SPDX-License-Identifier: Apache-2.0
#include "sandbox/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "core/file.h"

namespace mc::sandbox {
namespace {

using std::chrono::milliseconds;

Command shell(const std::string& script) {
  return {.argv = {"/bin/sh", "-c", script}, .environment = {"PATH=/usr/bin:/bin"}};
}

Completed run_shell(const std::string& script) {
  auto completed = run(shell(script));
  EXPECT_TRUE(completed) << completed.error().message;
  return completed ? std::move(completed).value() : Completed{};
}

TEST(Run, CapturesBothStreamsAndTheExitCode) {
  const Completed completed = run_shell("echo out; echo err >&2; exit 3");
  EXPECT_EQ(completed.out.text(), "out\n");
  EXPECT_EQ(completed.err.text(), "err\n");
  EXPECT_EQ(describe(completed.ending), "exit code 3");
  EXPECT_FALSE(succeeded(completed));
}

TEST(Run, SucceedsWithExitCodeZero) { EXPECT_TRUE(succeeded(run_shell("true"))); }

TEST(Run, ReportsTheSignalOfACrash) {
  EXPECT_EQ(describe(run_shell("kill -SEGV $$").ending), "signal 11 (Segmentation fault)");
}

TEST(Run, InheritsNoEnvironment) {
  setenv("MC_SANDBOX_TEST_SECRET", "secret", 1);
  EXPECT_THAT(run_shell("env; cat /proc/*/environ").out.text(),
              testing::Not(testing::HasSubstr("MC_SANDBOX_TEST_SECRET")));
  unsetenv("MC_SANDBOX_TEST_SECRET");
}

TEST(Run, GivesEmptyInput) { EXPECT_EQ(run_shell("cat | wc -c").out.text(), "0\n"); }

TEST(Run, StartsInTheDirectory) {
  Command command = shell("pwd");
  command.directory = "/usr";
  const auto completed = run(command);
  ASSERT_TRUE(completed);
  EXPECT_EQ(completed->out.text(), "/usr\n");
}

TEST(Run, WritesIntoAWritableDirectoryBelowTmp) {
  const auto directory = TemporaryDirectory::create("sandbox_test");
  ASSERT_TRUE(directory);
  Command command = shell("echo made > made");
  command.directory = directory->path();
  command.profile.writable = {directory->path()};
  const auto completed = run(command);
  ASSERT_TRUE(completed && succeeded(*completed)) << completed->err.text();
  const auto text = read_file(directory->path() / "made", 100);
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, "made\n");
}

TEST(Run, EndsAtTheWallLimit) {
  Command command = shell("sleep 100");
  command.profile.limits.wall = milliseconds(100);
  const auto completed = run(command);
  ASSERT_TRUE(completed);
  EXPECT_TRUE(std::holds_alternative<TimedOut>(completed->ending));
  EXPECT_GE(completed->wall, milliseconds(100));
  EXPECT_LT(completed->wall, milliseconds(1'100));
}

TEST(Run, KeepsHeadAndTailOfLongOutput) {
  Command command = shell("echo first; head -c 10000000 /dev/zero | tr '\\0' x; echo; echo last");
  command.output_bytes_max = 1'000;
  const auto completed = run(command);
  ASSERT_TRUE(completed && succeeded(*completed));
  const std::string text = completed->out.text();
  EXPECT_TRUE(completed->out.is_truncated());
  EXPECT_LT(text.size(), 1'100U);
  EXPECT_THAT(text, testing::StartsWith("first\nxxx"));
  EXPECT_THAT(text, testing::HasSubstr(" bytes left out "));
  EXPECT_THAT(text, testing::EndsWith("xxx\nlast\n"));
}

TEST(Run, KillsAProgramWithEndlessOutputAtTheWallLimit) {
  Command command = shell("yes");
  command.profile.limits.wall = milliseconds(100);
  const auto completed = run(command);
  ASSERT_TRUE(completed);
  EXPECT_TRUE(std::holds_alternative<TimedOut>(completed->ending));
}

TEST(Run, CountsProcessorTime) {
  const Completed completed = run_shell("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done");
  EXPECT_GT(completed.usage.cpu, milliseconds(10));
}

TEST(Run, StartsASmallProgramFromALargeProcess) {
  const std::string ballast(size_t{256} << 20, 'x');
  Command command = shell("echo ran");
  command.profile.limits.memory_bytes = uint64_t{64} << 20;
  const auto completed = run(command);
  ASSERT_TRUE(completed) << completed.error().message;
  EXPECT_EQ(completed->out.text(), "ran\n");
  EXPECT_EQ(ballast.back(), 'x');
}

TEST(Run, LimitsMemory) {
  Command command = shell("x=$(head -c 100000000 /dev/zero | tr '\\0' x); echo ${#x}");
  command.profile.limits.memory_bytes = uint64_t{64} << 20;
  const auto completed = run(command);
  ASSERT_TRUE(completed);
  EXPECT_FALSE(succeeded(*completed));
}

TEST(Run, ReportsAMissingProgram) {
  const auto completed = run(Command{.argv = {"/nonexistent/program"}});
  ASSERT_FALSE(completed);
  EXPECT_EQ(completed.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(completed.error().message, testing::HasSubstr("cannot run /nonexistent/program"));
}

TEST(Run, RefusesAnEmptyCommand) {
  const auto completed = run(Command{});
  ASSERT_FALSE(completed);
  EXPECT_EQ(completed.error().code, ErrorCode::kInvalidInput);
}

TEST(Output, KeepsTextWithinTheLimit) {
  Output output(10);
  output.append("12345", 5);
  output.append("67890", 5);
  EXPECT_EQ(output.text(), "1234567890");
  EXPECT_FALSE(output.is_truncated());
}

TEST(Output, CountsDroppedBytes) {
  Output output(4);
  for (char c = 'a'; c <= 'z'; ++c) output.append(&c, 1);
  EXPECT_EQ(output.text(), "ab\n[… 22 bytes left out …]\nyz");
}

}  // namespace
}  // namespace mc::sandbox
