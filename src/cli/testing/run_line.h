// SPDX-License-Identifier: Apache-2.0
//
// A command line that runs in this process as in main(), for tests.
#ifndef MC_CLI_TESTING_RUN_LINE_H_
#define MC_CLI_TESTING_RUN_LINE_H_

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/program.h"

namespace mc::cli {

struct Ended {
  int code = -1;
  std::string out;  // Standard output.
  std::string err;  // Standard error.
};

// The exit code of a command line.
inline int code_of_line(const std::vector<std::string>& words) {
  CLI::App app{"test"};
  int exit_code = -1;
  add_commands(app, exit_code);
  std::vector<const char*> argv{"musacoder"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  return run_command_line(app, "musacoder", static_cast<int>(argv.size()), argv.data(), exit_code);
}

inline Ended run_line(const std::vector<std::string>& words) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = code_of_line(words);
  std::string err = testing::internal::GetCapturedStderr();
  return {.code = code, .out = testing::internal::GetCapturedStdout(), .err = std::move(err)};
}

}  // namespace mc::cli

#endif  // MC_CLI_TESTING_RUN_LINE_H_
