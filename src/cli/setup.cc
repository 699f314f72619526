// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "eval/pipeline.h"

namespace mc::cli {

namespace {

// Sets up the CPU backend, and the backend that `eval` would choose.
Status set_up_all() {
  print_when_ended("musacoder: interrupted; nothing half-built is left: start it once more");
  ProgressBar bar(0);
  const auto note = [&](std::string_view step) { bar.note(step); };
  eval::Options options;
  const task::Backend best = eval::best_backend(options.python);
  MC_TRY_VOID(eval::set_up_machine(options, note), "set-up");
  if (options.backend == best) return ok();
  options.backend = best;
  return eval::set_up_machine(options, note);
}

}  // namespace

void add_setup(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("setup", "Build what is needed against the installed PyTorch (once)");
  command->footer(
      "Example:\n"
      "  musacoder setup      # minutes, once; the first eval does it otherwise");
  command->callback([&exit_code] { exit_code = code_of(set_up_all()); });
}

}  // namespace mc::cli
