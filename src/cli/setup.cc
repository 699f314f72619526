// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "cli/commands.h"
#include "cli/progress.h"
#include "eval/pipeline.h"

namespace mc::cli {

void add_setup(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("setup", "Build what is needed against the installed PyTorch (once)");
  command->callback([&exit_code] {
    ProgressBar bar(0);
    const Status status =
        eval::set_up_machine(eval::Options{}, [&](std::string_view step) { bar.note(step); });
    bar.finish();
    exit_code = status ? kExitDone : report_error(status.error());
  });
}

}  // namespace mc::cli
