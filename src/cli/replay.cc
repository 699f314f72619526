// SPDX-License-Identifier: Apache-2.0
//
// The command `musacoder replay`: repeats on this device the commands of the candidate in a
// recorded verdict (docs/replay.md).
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "core/file.h"
#include "eval/pipeline.h"
#include "eval/recording.h"

namespace mc::cli {
namespace {

using Json = nlohmann::json;

struct ReplayArguments {
  std::string file;
  std::string backend = "auto";
  bool json = false;
  bool weak_sandbox = false;
};

Json json_of(const eval::Recording& recording, const eval::Replayed& replayed) {
  Json findings = Json::array();
  for (const task::KernelFinding& finding : replayed.findings) {
    findings.push_back({{"kind", finding.kind},
                        {"kernel", finding.kernel},
                        {"line", finding.location.line},
                        {"detail", finding.detail}});
  }
  return {{"schema", "musacoder-replay/1"},
          {"task", recording.verdict.task},
          {"candidate", recording.verdict.candidate},
          {"outcome", task::outcome_name(recording.verdict.outcome)},
          {"recorded_on", recording.device},
          {"replayed_on", replayed.device},
          {"agrees", replayed.agrees()},
          {"commands", replayed.commands},
          {"calls", replayed.calls},
          {"outputs", replayed.outputs},
          {"equal", replayed.equal},
          {"differences", replayed.differences},
          {"errors", replayed.errors},
          {"unsupported", replayed.unsupported},
          {"findings", std::move(findings)}};
}

void print(const eval::Recording& recording, const eval::Replayed& replayed) {
  fmt::print("{} on {}: {} when it was recorded on {}\n", recording.verdict.candidate,
             recording.verdict.task, task::outcome_name(recording.verdict.outcome),
             recording.device);
  fmt::print("replayed on {}: {} commands, {} calls; {} outputs, {} of them equal bit by bit: {}\n",
             replayed.device, replayed.commands, replayed.calls, replayed.outputs, replayed.equal,
             replayed.agrees() ? "they agree within the tolerance" : "they differ");
  for (const std::string& text : replayed.differences) fmt::print("  {}\n", text);
  for (const std::string& text : replayed.errors) fmt::print("  {}\n", text);
  if (!replayed.unsupported.empty()) fmt::print("  no {} here\n", replayed.unsupported);
  for (const task::KernelFinding& finding : replayed.findings) {
    fmt::print("  {} in {}: {}\n", finding.kind, finding.kernel, finding.detail);
  }
}

Result<int> run(const ReplayArguments& arguments) {
  MC_TRY(const std::string bytes, read_file(arguments.file, eval::kRecordingBytesMax),
         arguments.file);
  MC_TRY(const eval::Recording recording, eval::recording_from_bytes(bytes), arguments.file);
  eval::Options options;
  MC_TRY(options.backend, chosen_backend(arguments.backend), "replay");
  options.is_portable = true;
  options.timing.enabled = false;
  options.race_check = eval::RaceCheckMode::kOff;
  options.spares = 0;
  options.allow_weak_sandbox = arguments.weak_sandbox;
  options.dialect = recording.verdict.protocol.dialect;
  if (options.dialect == task::Dialect::kMusa) {
    options.musa_architecture = recording.verdict.protocol.musa_architecture;
  }
  MC_TRY(auto pipeline, eval::Pipeline::create(options, [](std::string_view) {}), "replay");
  MC_TRY(const eval::Replayed replayed, pipeline->replay(recording), arguments.file);
  if (arguments.json) {
    std::cout << json_of(recording, replayed).dump(-1, ' ', false, Json::error_handler_t::replace)
              << "\n";
  } else {
    print(recording, replayed);
  }
  return replayed.agrees() ? kExitDone : kExitFailed;
}

}  // namespace

void add_replay(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ReplayArguments>();
  CLI::App* command = app.add_subcommand(
      "replay", "Run what the candidate of a recorded verdict sent, and compare its outputs");
  command->add_option("file", arguments->file, "Of eval --record")->required();
  command->add_option("--backend", arguments->backend, eval::backend_names());
  command->add_flag("--json", arguments->json, "Print one line of JSON");
  command->add_flag("--allow-weak-sandbox", arguments->weak_sandbox,
                    "Go on where this machine cannot give a protection");
  command->footer(
      "Examples:\n"
      "  musacoder eval --task reduction/row_sum answer.py --record verdict.recording\n"
      "  musacoder replay verdict.recording --backend cpu\n"
      "Exit code: 0 the outputs agree within the tolerance of the verdict, 1 the machine failed or "
      "cannot run it, 2 no recording, or a changed one, 3 the outputs differ.");
  command->callback([arguments, &exit_code] { exit_code = code_of(run(*arguments)); });
}

}  // namespace mc::cli
