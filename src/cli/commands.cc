// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

#include <iostream>

#include "cli/defaults.h"
#include "core/log.h"

namespace mc::cli {

void add_commands(CLI::App& app, int& exit_code) {
  show_defaults(app);
  app.require_subcommand(1);
  app.set_version_flag("--version", kProgram);
  app.add_flag_callback("-v,--verbose", enable_log,
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
  add_eval(app, exit_code);
  add_prepare(app, exit_code);
  add_measure(app, exit_code);
  add_replay(app, exit_code);
  add_check(app, exit_code);
  add_bench(app, exit_code);
  add_optimize(app, exit_code);
  add_report(app, exit_code);
  add_doctor(app, exit_code);
  add_setup(app, exit_code);
  add_forge(app, exit_code);
  add_import(app, exit_code);
  add_task(app, exit_code);
  add_musify(app, exit_code);
  add_serve(app, exit_code);
  add_explain(app, exit_code);
  add_mcp(app, exit_code);
  add_workspace(app, exit_code);
  add_learn(app, exit_code);
  add_shell_completion(app, exit_code);
  describe_values(app);
}

void print_step(std::string_view step) { std::cerr << "musacoder: " << step << std::endl; }

}  // namespace mc::cli
