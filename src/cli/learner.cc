// SPDX-License-Identifier: Apache-2.0
#include "cli/learner.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/commands.h"
#include "compile/pytorch.h"
#include "core/check.h"
#include "core/fd.h"

namespace mc::cli {
namespace {

Result<std::string> find_learner(const Layout& layout) {
  const std::string program = layout.prefix / "bin/musacoder-learn";
  std::error_code ignored;
  if (std::filesystem::exists(program, ignored)) return program;
  return invalid(program +
                 " is not there: use build/dev/bin/musacoder of MusaCoder's source tree, "
                 "beside which ./run.sh build makes it (docs/learn.md)");
}

// The words of the program's command line, whose first one is its path.
Result<std::vector<std::string>> command_of(const Layout& layout,
                                            const std::vector<std::string>& arguments) {
  MC_CHECK(!arguments.empty());
  const auto program = find_learner(layout);
  if (!program) return program.error();
  std::vector<std::string> words = {*program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  // This Python renders a model's own chat template.
  ::setenv("MC_PYTHON", compile::default_python().c_str(), /*overwrite=*/0);
  return words;
}

}  // namespace

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

Error exec_learner(const std::vector<std::string>& arguments) {
  const Result<Layout> layout = find_layout();
  if (!layout) return layout.error();
  auto words = command_of(*layout, arguments);
  if (!words) return words.error();
  ::execv(words->front().c_str(), pointers_to(*words).data());
  return system_error(ErrorCode::kUnavailable, "cannot start " + words->front());
}

Status run_learner(const Layout& layout, const std::vector<std::string>& arguments) {
  MC_TRY(std::vector<std::string> words, command_of(layout, arguments), "learner");
  const std::string program = words.front();
  pid_t pid = -1;
  errno =
      ::posix_spawn(&pid, program.c_str(), nullptr, nullptr, pointers_to(words).data(), environ);
  if (errno != 0) return system_error(ErrorCode::kUnavailable, "cannot start " + program);
  int status = 0;
  pid_t ended = -1;
  do {
    ended = ::waitpid(pid, &status, 0);
  } while (ended < 0 && errno == EINTR);
  // The status is lost if the parent of this program ignores SIGCHLD.
  if (ended != pid) return system_error(ErrorCode::kUnavailable, "cannot wait for " + program);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitDone) return ok();
  const bool is_input = WIFEXITED(status) && WEXITSTATUS(status) == kExitInput;
  return Error{is_input ? ErrorCode::kInvalidInput : ErrorCode::kUnavailable,
               "musacoder-learn " + arguments.front() + " failed"};
}

}  // namespace mc::cli
