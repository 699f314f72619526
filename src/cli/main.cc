// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <string>
#include <vector>

#include <sys/resource.h>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/defaults.h"
#include "cli/python_path.h"
#include "cli/suggest.h"
#include "core/file.h"
#include "core/log.h"

constexpr int kWrongUse = 2;

// Each watched process takes several descriptors, and a shell's usual limit is 1024.
void allow_many_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

// Flushes the output and returns the exit code.
int end(int exit_code) {
  const mc::Status printed = mc::flush_standard_output();
  return printed ? exit_code : mc::cli::report_error(printed.error());
}

int main(int argc, char** argv) {
  allow_many_descriptors();
  mc::cli::keep_program_arguments(argc, argv);
  mc::cli::leave_current_folder_out_of_python_path();
  CLI::App app{"MusaCoder: judges GPU kernels that models write for PyTorch programs"};
  mc::cli::show_defaults(app);
  app.require_subcommand(1);
  app.set_version_flag("--version", mc::cli::kProgram);
  app.add_flag_callback("-v,--verbose", mc::enable_log,
                        "Tell on standard error what is run: processes, compilers, stages, with "
                        "times");
  app.footer(
      "A first look, and a first verdict:\n"
      "  musacoder doctor\n"
      "  musacoder eval --task reduction/row_sum examples/row_sum_race.py\n\n"
      "Environment:\n"
      "  MC_PYTHON        the Python that has PyTorch (default: the cache's own, else python3)\n"
      "  MC_CACHE_DIR     what is built once, and compiled candidates (default: "
      "~/.cache/musacoder)\n"
      "  MC_CACHE_BYTES   the most bytes of compiled candidates (default: 4 GiB)\n"
      "  MC_KERNELBENCH   a copy of KernelBench, for tasks such as kernelbench:1/19\n"
      "  OPENAI_API_KEY   the key of --endpoint\n"
      "  MUSACODER_TOKEN  the bearer token of serve");
  app.fallthrough();
  int exit_code = 0;
  mc::cli::add_eval(app, exit_code);
  mc::cli::add_prepare(app, exit_code);
  mc::cli::add_measure(app, exit_code);
  mc::cli::add_replay(app, exit_code);
  mc::cli::add_check(app, exit_code);
  mc::cli::add_bench(app, exit_code);
  mc::cli::add_optimize(app, exit_code);
  mc::cli::add_report(app, exit_code);
  mc::cli::add_doctor(app, exit_code);
  mc::cli::add_setup(app, exit_code);
  mc::cli::add_forge(app, exit_code);
  mc::cli::add_import(app, exit_code);
  mc::cli::add_task(app, exit_code);
  mc::cli::add_musify(app, exit_code);
  mc::cli::add_serve(app, exit_code);
  mc::cli::add_explain(app, exit_code);
  mc::cli::add_mcp(app, exit_code);
  mc::cli::add_workspace(app, exit_code);
  mc::cli::add_learn(app, exit_code);
  mc::cli::add_shell_completion(app, exit_code);
  mc::cli::describe_values(app);
  // The parent is `app` or, for its subcommands, the command `task`.
  const CLI::App* parent = &app;
  for (int i = 1; i < argc && parent != nullptr; ++i) {
    const CLI::App* next = nullptr;
    std::vector<std::string> names;
    for (const CLI::App* command : parent->get_subcommands({})) {
      names.push_back(command->get_name());
      if (command->get_name() == argv[i]) next = command;
    }
    if (names.empty()) break;
    if (const auto wrong = mc::cli::unknown_subcommand({argv + i, argv + argc}, names)) {
      std::cerr << "musacoder: " << *wrong << "\n";
      return kWrongUse;
    }
    parent = next;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& wrong) {
    if (wrong.get_exit_code() == 0) return end(app.exit(wrong));  // --help, --version
    std::cerr << "musacoder: "
              << mc::cli::advice_for(wrong, app, "musacoder", {argv + 1, argv + argc}) << "\n";
    return kWrongUse;
  }
  return end(exit_code);
}
