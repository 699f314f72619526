// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <iostream>

#include <c10/util/Exception.h>
#include <CLI/CLI.hpp>

#include "cli/defaults.h"
#include "cli/learn/commands.h"
#include "cli/python_path.h"

int main(int argc, char** argv) {
  mc::cli::leave_current_folder_out_of_python_path();
  CLI::App app{"MusaCoder: trains and runs language models on PyTorch's libraries"};
  mc::cli::show_defaults(app);
  app.require_subcommand(1);
  int exit_code = 0;
  for (const auto add : {&mc::learn::add_init, &mc::learn::add_sft, &mc::learn::add_rft,
                         &mc::learn::add_rl, &mc::learn::add_generate, &mc::learn::add_tokenize}) {
    add(app, exit_code);
  }
  mc::cli::describe_values(app);
  try {
    return mc::cli::run_command_line(app, "musacoder-learn", argc, argv, exit_code);
  } catch (const c10::Error& failure) {
    std::cerr << "musacoder-learn: PyTorch: " << failure.what_without_backtrace() << "\n";
  } catch (const std::exception& failure) {
    std::cerr << "musacoder-learn: " << failure.what() << "\n";
  }
  return mc::learn::kExitMachine;
}
