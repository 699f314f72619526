// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <string>
#include <vector>

#include <sys/resource.h>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/defaults.h"
#include "cli/suggest.h"

constexpr int kWrongUse = 2;

// Each process that is watched takes a handful; a shell's usual limit is 1024.
void allow_many_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

// Messages that help to debug an evaluation go to standard error, with the thread that did it.
void log_to_stderr() {
  spdlog::set_default_logger(spdlog::stderr_logger_mt("musacoder"));
  spdlog::set_pattern("%H:%M:%S.%e [%t] %v");
}

// The options of the subcommand that was given, without their dashes.
std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands()) {
    for (const CLI::Option* option : command->get_options()) {
      names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
    }
  }
  return names;
}

int main(int argc, char** argv) {
  allow_many_descriptors();
  log_to_stderr();
  CLI::App app{"MusaCoder: judges GPU kernels that models write for PyTorch programs"};
  mc::cli::show_defaults(app);
  app.require_subcommand(1);
  app.set_version_flag("--version", mc::cli::kProgram);
  app.add_flag_callback(
      "-v,--verbose", [] { spdlog::set_level(spdlog::level::debug); },
      "Tell on standard error what is run: processes, compilers, stages, with "
      "times");
  app.fallthrough();
  int exit_code = 0;
  mc::cli::add_eval(app, exit_code);
  mc::cli::add_prepare(app, exit_code);
  mc::cli::add_measure(app, exit_code);
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
  mc::cli::add_learn(app, exit_code);
  mc::cli::hide_described_defaults(app);
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (const auto wrong = mc::cli::unknown_subcommand({argv + 1, argv + argc}, names)) {
    std::cerr << "musacoder: " << *wrong << "\n";
    return kWrongUse;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& wrong) {
    if (wrong.get_exit_code() == 0) return app.exit(wrong);  // --help, --version
    const auto nearest = mc::cli::unknown_option({argv + 1, argv + argc}, options_of(app));
    std::cerr << "musacoder: " << wrong.what() << "; " << nearest.value_or("--help tells more")
              << "\n";
    return kWrongUse;
  }
  return exit_code;
}
