// SPDX-License-Identifier: Apache-2.0
//
// The command `musacoder explain`: prints the hint of the feedback for a kind of failure.
#include <iostream>
#include <memory>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "reward/hints.h"

namespace mc::cli {
namespace {

// "" for a name without a hint.
std::string_view hint_of(const std::string& name) {
  for (const std::string_view hint :
       {reward::kernel_hint(name), reward::extraction_hint(name), reward::output_hint(name)}) {
    if (!hint.empty()) return hint;
  }
  const bool is_illegal = name == "illegal" || name == "timing";
  return is_illegal ? reward::illegal_hint(name, "musacoder/") : "";
}

int explain(const std::string& name) {
  const std::string_view hint = hint_of(name);
  if (hint.empty()) {
    return report_error({ErrorCode::kInvalidInput, "explain: there is no hint for " + name});
  }
  std::cout << name << ": " << hint << "\n";
  return kExitDone;
}

}  // namespace

void add_explain(CLI::App& app, int& exit_code) {
  auto name = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("explain", "What a finding of feedback usually means, in one sentence");
  command->add_option("name", *name, "Such as shared_race, no_code or nonfinite")->required();
  command->footer(
      "Example:\n"
      "  musacoder explain shared_race");
  command->callback([name, &exit_code] { exit_code = explain(*name); });
}

}  // namespace mc::cli
