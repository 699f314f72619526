// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/python_path.h"

// Each watched process takes several descriptors, and a shell's usual limit is 1024.
void allow_many_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char** argv) {
  allow_many_descriptors();
  mc::cli::keep_program_arguments(argc, argv);
  mc::cli::leave_current_folder_out_of_python_path();
  CLI::App app{"MusaCoder: judges GPU kernels that models write for PyTorch programs"};
  int exit_code = 0;
  mc::cli::add_commands(app, exit_code);
  return mc::cli::run_command_line(app, "musacoder", argc, argv, exit_code);
}
