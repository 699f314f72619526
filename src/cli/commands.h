// SPDX-License-Identifier: Apache-2.0
//
// The subcommands.  Each registers its options with the parser, and a callback that runs it and
// stores the exit code: 0 success (whatever the verdicts are), 1 a failure of the machine, 2
// invalid input. With eval --exit-code: 3 some candidate fails, 4 none fails but some is not
// scored.  With bench: 4 a request got no answer.
#ifndef MC_CLI_COMMANDS_H_
#define MC_CLI_COMMANDS_H_

#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "cli/program.h"
#include "core/result.h"
#include "task/provenance.h"
#include "task/task.h"

namespace mc::cli {

using task::kProgram;

inline constexpr int kExitFailed = 3;
inline constexpr int kExitUnscored = 4;
inline constexpr int kExitUnanswered = 4;  // The exit code of `bench` if a request got no answer.
// The exit code of `task check` if a task is trivial or cannot be judged, and of `musify` if a port
// is not complete.
inline constexpr int kExitFound = 3;

// Adds all commands of `musacoder`, with its description and the texts of --help.
void add_commands(CLI::App& app, int& exit_code);

void add_eval(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
// For the command `check`: removes the words after "--" from the command line and keeps them.
void keep_program_arguments(int& argc, char** argv);
void add_check(CLI::App& app, int& exit_code);
// The script describes the commands that `app` has when it runs.
void add_shell_completion(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code);
void add_prepare(CLI::App& app, int& exit_code);
void add_measure(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_setup(CLI::App& app, int& exit_code);
void add_forge(CLI::App& app, int& exit_code);
void add_import(CLI::App& app, int& exit_code);
// These two functions add `operators` and `export` to the command `task`.
void add_task_operators(CLI::App& family, int& exit_code);
void add_task_export(CLI::App& family, int& exit_code);
void add_mcp(CLI::App& app, int& exit_code);
void add_musify(CLI::App& app, int& exit_code);
void add_optimize(CLI::App& app, int& exit_code);
void add_replay(CLI::App& app, int& exit_code);
void add_report(CLI::App& app, int& exit_code);
void add_serve(CLI::App& app, int& exit_code);
void add_task(CLI::App& app, int& exit_code);
void add_workspace(CLI::App& app, int& exit_code);
void add_learn(CLI::App& app, int& exit_code);  // The commands of musacoder-learn: init, sft, ...

// The backend for a value of --backend: auto, cpu or cuda; auto selects the best backend of this
// machine.
Result<task::Backend> chosen_backend(const std::string& name);

// Prints "musacoder: <message>" as one line on standard error, and returns the error's exit code.
inline int report_error(const Error& error) { return report_error("musacoder", error); }

// The exit code of a command: its own, or that of its error, which is printed.
inline int code_of(const Result<int>& code) { return code ? *code : report_error(code.error()); }
inline int code_of(const Status& status) {
  return status ? kExitDone : report_error(status.error());
}

// Prints "musacoder: <step>" as a line on standard error, before a long step.
void print_step(std::string_view step);

}  // namespace mc::cli

#endif  // MC_CLI_COMMANDS_H_
