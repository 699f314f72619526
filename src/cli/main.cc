// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "cli/commands.h"

int main(int argc, char** argv) {
  CLI::App app{"MusaCoder: judges GPU kernels that models write for PyTorch programs"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "musacoder 0.1.0");
  int exit_code = 0;
  mc::cli::add_eval(app, exit_code);
  mc::cli::add_doctor(app, exit_code);
  mc::cli::add_prepare(app, exit_code);
  CLI11_PARSE(app, argc, argv);
  return exit_code;
}
