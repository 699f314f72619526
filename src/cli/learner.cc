// SPDX-License-Identifier: Apache-2.0
#include "cli/learner.h"

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/commands.h"
#include "core/fd.h"

namespace mc::cli {

namespace {

Result<std::string> find_learner(const Layout& layout) {
  const std::string program = layout.prefix / "bin/musacoder-learn";
  std::error_code ignored;
  if (std::filesystem::exists(program, ignored)) return program;
  return Error{ErrorCode::kUnavailable,
               program + " is not there: build it with ./run.sh build (it needs PyTorch)"};
}

// As execv wants them; they point into `words`.
std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Becomes the program; comes back with why not.
Error become_learner(std::vector<std::string> words) {
  const auto layout = find_layout();
  if (!layout) return layout.error();
  const auto program = find_learner(*layout);
  if (!program) return program.error();
  words.insert(words.begin(), *program);
  ::execv(program->c_str(), pointers_to(words).data());
  return system_error(ErrorCode::kUnavailable, "cannot start " + *program);
}

}  // namespace

Status run_learner(const Layout& layout, const std::vector<std::string>& arguments) {
  MC_TRY(const std::string program, find_learner(layout), "learner");
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const std::vector<char*> pointers = pointers_to(words);
  pid_t pid = -1;
  errno = ::posix_spawn(&pid, program.c_str(), nullptr, nullptr, pointers.data(), environ);
  if (errno != 0) return system_error(ErrorCode::kUnavailable, "cannot start " + program);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitDone) return ok();
  const bool is_input = WIFEXITED(status) && WEXITSTATUS(status) == kExitInput;
  return Error{is_input ? ErrorCode::kInvalidInput : ErrorCode::kUnavailable,
               "musacoder-learn " + arguments.front() + " failed"};
}

void add_learner(CLI::App& app, int& exit_code) {
  const std::pair<const char*, const char*> kCommands[] = {
      {"init", "Make a small model with random weights (musacoder-learn)"},
      {"sft", "Train a model on conversations (musacoder-learn)"},
      {"generate", "Let a model answer (musacoder-learn)"}};
  for (const auto& [name, about] : kCommands) {
    CLI::App* command = app.add_subcommand(name, about)->prefix_command();
    command->set_help_flag();
    command->callback([command, &exit_code] {
      std::vector<std::string> words = {command->get_name()};
      const std::vector<std::string> rest = command->remaining();
      words.insert(words.end(), rest.begin(), rest.end());
      exit_code = report_error(become_learner(std::move(words)));
    });
  }
}

}  // namespace mc::cli
