// SPDX-License-Identifier: Apache-2.0
#include "core/process.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/fd.h"
#include "core/file.h"

namespace mc {
namespace {

// The standard output of a shell script, which must succeed.
std::string printed_by(const std::string& script, Program program = {}) {
  Pipe pipe = make_pipe().value();
  program.argv = {"sh", "-c", script};
  program.descriptors.emplace_back(pipe.writer.get(), STDOUT_FILENO);
  const pid_t pid = start_program(program).value();
  pipe.writer.reset();
  std::string text = read_to_end(pipe.reader);
  EXPECT_EQ(wait_for_end(pid).value(), 0) << script;
  return text;
}

TEST(Process, PointsToTheWordsAndEndsWithNull) {
  const std::vector<std::string> words = {"a", ""};
  const std::vector<char*> pointers = pointers_to(words);
  ASSERT_EQ(pointers.size(), 3u);
  EXPECT_EQ(pointers[0], words[0].data());
  EXPECT_EQ(pointers[1], words[1].data());
  EXPECT_EQ(pointers[2], nullptr);
}

TEST(Process, ReportsTheStatusOfItsEnd) {
  const int status = wait_for_end(start_program({.argv = {"sh", "-c", "exit 7"}}).value()).value();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  const int killed =
      wait_for_end(start_program({.argv = {"sh", "-c", "kill -9 $$"}}).value()).value();
  EXPECT_TRUE(WIFSIGNALED(killed));
  EXPECT_EQ(WTERMSIG(killed), SIGKILL);
  EXPECT_FALSE(wait_for_end(::getpid())) << "it is no child";
}

TEST(Process, RejectsAProgramThatDoesNotExist) {
  EXPECT_EQ(start_program({.argv = {"/no/such/program"}}).error().code, ErrorCode::kUnavailable);
}

TEST(Process, HasOnlyTheInputThatItIsGiven) {
  EXPECT_EQ(printed_by("cat", {.argv = {}, .has_input = false}), "");
  Pipe input = make_pipe().value();
  ASSERT_EQ(::write(input.writer.get(), "text", 4), 4);
  input.writer.reset();
  EXPECT_EQ(printed_by("cat /dev/fd/20", {.argv = {}, .descriptors = {{input.reader.get(), 20}}}),
            "text");
}

TEST(Process, HasTheEnvironmentThatItIsGiven) {
  EXPECT_EQ(printed_by("echo $MC_A", {.argv = {}, .environment = {{"MC_A=b"}}}), "b\n");
}

TEST(Process, HasAProcessGroupOfItsOwnOnRequest) {
  const std::string own = std::to_string(::getpgrp());
  const std::string script = "cut -d' ' -f5 /proc/$$/stat";
  EXPECT_EQ(printed_by(script), own + "\n");
  EXPECT_NE(printed_by(script, {.argv = {}, .has_own_group = true}), own + "\n");
}

TEST(Fd, PipeEndsAreNotInherited) {
  const Pipe pipe = make_pipe().value();
  EXPECT_EQ(::fcntl(pipe.reader.get(), F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(::fcntl(pipe.writer.get(), F_GETFD), FD_CLOEXEC);
}

TEST(Fd, ReadsAllThatIsWrittenIntoAPipe) {
  Pipe pipe = make_pipe().value();
  const std::string large(1 << 20, 'x');
  std::jthread writer([&, end = std::move(pipe.writer)]() mutable {
    for (size_t at = 0; at < large.size();) {
      const ssize_t written = ::write(end.get(), large.data() + at, large.size() - at);
      ASSERT_GT(written, 0);
      at += static_cast<size_t>(written);
    }
    end.reset();
  });
  EXPECT_EQ(read_to_end(pipe.reader), large);
}

TEST(Fd, AnExclusiveLockExcludesOthers) {
  const auto folder = TemporaryDirectory::create("mc-lock").value();
  const std::string path = (folder.path() / "lock").string();
  Fd one(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const Fd other(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_TRUE(lock_file(one, LOCK_EX | LOCK_NB));
  EXPECT_FALSE(lock_file(other, LOCK_SH | LOCK_NB));
  one.reset();
  EXPECT_TRUE(lock_file(other, LOCK_SH | LOCK_NB));
}

TEST(File, PathExistsForAnyKindOfFile) {
  const auto folder = TemporaryDirectory::create("mc-exists").value();
  EXPECT_TRUE(path_exists(folder.path()));
  EXPECT_TRUE(path_exists("/dev/null"));
  EXPECT_FALSE(path_exists(folder.path() / "none"));
  EXPECT_FALSE(path_exists(folder.path() / std::string(5000, 'x'))) << "an error counts as none";
}

}  // namespace
}  // namespace mc
