// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/judging.h"
#include "cli/progress.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/layout.h"
#include "eval/pipeline.h"
#include "eval/recording.h"
#include "service/stream.h"
#include "service/verifier.h"

namespace mc::cli {
namespace {

constexpr size_t kHashCharacters = 12;

// Judges all work on `jobs` threads; the results have the order of the work.
std::vector<report::Judged> judge_all(eval::Pipeline& pipeline, const std::vector<Work>& work,
                                      const EvalArguments& arguments, int jobs,
                                      VerdictFile& results, ProgressBar& bar) {
  std::vector<report::Judged> judged(work.size());
  for_each_index(work.size(), jobs, [&](size_t i) {
    const auto start = std::chrono::steady_clock::now();
    judged[i] = judged_since(start, pipeline.evaluate(work[i].task, work[i].candidate), arguments);
    results.add(judged[i]);
    bar.advance(work[i].candidate.id);
  });
  return judged;
}

// A hash that is equal for options that lead to equal verdicts.
std::string hash_of_options(const EvalArguments& arguments, bool checks_races) {
  const eval::Options& options = arguments.options;
  const eval::Limits& limits = options.limits;
  const std::string text = fmt::format(
      "{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", to_string(options.correctness),
      to_string(options.dialect), options.musa_architecture, options.timing.enabled,
      options.timing.baseline, options.timing.compile_mode, options.timing.is_quick,
      options.timing.tf32, options.static_rules, options.strict, limits.compile_s, limits.load_s,
      limits.forward_s, limits.candidate_s, options.language, checks_races);
  return content_hash({text}).substr(0, kHashCharacters);
}

// Reads requests from standard input and writes replies to standard output (service/stream.h).
Status run_stream(const EvalArguments& arguments, const CLI::App& command, const Layout& layout) {
  MC_TRY(auto pipeline, eval::Pipeline::create(arguments.options, print_step), "eval");
  // The check comes before the first reply, so a client that gets a reply knows that this machine
  // can judge.
  MC_TRY_VOID(pipeline->check_machine(), "eval");
  service::PipelineVerifier verifier(*pipeline);
  service::serve_stream(
      std::cin, std::cout, verifier,
      {.jobs = jobs_of(arguments, command, *pipeline),
       .roots = roots_of(layout),
       .correctness = arguments.options.correctness,
       .score = arguments.score,
       .about = fmt::format("{}, {}, options {}", kProgram, pipeline->description(),
                            hash_of_options(arguments, pipeline->checks_races())),
       .feedback_tokens = static_cast<size_t>(arguments.feedback_tokens)});
  return ok();
}

// The recording of the only verdict.  It stays empty if the verdict was decided before the
// candidate had a device, and is an error if the recording failed.
using Recorded = std::optional<Result<eval::Recording>>;

// Sets the options for a recording: the candidate is not timed, and is compiled so that any device
// can replay it.
Status record_into(Recorded& recorded, EvalArguments& arguments) {
  eval::Options& options = arguments.options;
  if (options.policy != eval::Options().policy) {
    return invalid("--record: verdicts under --policy " + options.policy + " are not recorded");
  }
  if (options.strict || options.race_check == eval::RaceCheckMode::kOn) {
    return invalid("--record: leave out --strict and --race-check");
  }
  options.is_portable = true;
  options.timing.enabled = false;
  options.race_check = eval::RaceCheckMode::kOff;
  options.on_recorded = [&recorded](Result<eval::Recording> one) { recorded = std::move(one); };
  return check_output(arguments.record);
}

Status write_recording(const Recorded& recorded, const EvalArguments& arguments) {
  if (!recorded) {
    return invalid("--record: the verdict was known before the candidate had a device");
  }
  if (!*recorded) return with_context(recorded->error(), "--record");
  return write_output(arguments.record, eval::to_bytes(**recorded));
}

Result<int> run_eval(EvalArguments& arguments, const CLI::App& command) {
  MC_TRY_VOID(resolve_options(arguments, command), "eval");
  MC_TRY(const Layout layout, find_layout(), "eval");
  if (arguments.stream) {
    MC_TRY_VOID(run_stream(arguments, command, layout), "eval");
    return kExitDone;
  }
  if (arguments.candidates.empty()) {
    return invalid("give a candidate, musacoder eval --task TASK FILE, or --stream");
  }
  auto loaded = load_work(arguments, layout);
  if (!loaded) return loaded.error();  // The error names the file and needs no other context.
  LoadedWork& given = *loaded;
  if (given.work.empty()) return kExitInput;
  Recorded recorded;
  if (!arguments.record.empty()) {
    if (given.work.size() > 1)
      return invalid("--record: give one candidate; a file has one verdict");
    MC_TRY_VOID(record_into(recorded, arguments), "eval");
  }
  MC_TRY(const auto results, VerdictFile::create(arguments.out), "eval");
  ProgressBar bar(given.work.size());
  MC_TRY(auto pipeline, open_pipeline(arguments.options, bar), "eval");
  MC_TRY_VOID(check_tasks(*pipeline, given, arguments.jobs), "eval");
  if (given.work.empty()) return kExitInput;
  const std::vector<report::Judged> judged = judge_all(
      *pipeline, given.work, arguments, jobs_of(arguments, command, *pipeline), *results, bar);
  bar.finish();
  MC_TRY_VOID(results->finish(judged), "eval");
  print(judged, arguments);
  if (!arguments.record.empty()) MC_TRY_VOID(write_recording(recorded, arguments), "eval");
  return exit_code_of(given.bad, judged, arguments);
}

}  // namespace

void add_eval(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<EvalArguments>();
  CLI::App* command = app.add_subcommand("eval", "Judge candidates");
  add_candidates(*command, *arguments);
  add_machine(*command, *arguments);
  add_dialect(*command, *arguments);
  add_verdicts(*command, *arguments);
  add_correctness(*command, arguments->options.correctness);
  add_race_check(*command, *arguments);
  add_timing(*command, *arguments);
  add_compile_limits(*command, *arguments);
  add_run_limits(*command, *arguments);
  add_reward(*command, *arguments);
  add_experiments(*command, *arguments);
  command->add_option("--record", arguments->record,
                      "Write what the candidate sends to its device to this file, to be replayed");
  command
      ->add_flag("--stream", arguments->stream,
                 "Read requests {id, task, answer} a line each, reply as each is judged")
      ->excludes("--candidate")
      ->excludes("--record");
  add_architecture(*command, *arguments);
  command->get_option("--architecture")->needs("--stream");
  command->footer(
      "Examples:\n"
      "  musacoder eval --task reduction/row_sum examples/row_sum_race.py\n"
      "  musacoder eval --task my_task.py answer.md --feedback\n"
      "  musacoder eval answers.jsonl --suite tasks --jobs 2 --out verdicts.jsonl\n"
      "Exit code: 0 done, 1 the machine failed, 2 bad input; with --exit-code 3 some fail, 4 some "
      "are not scored.");
  command->callback(
      [arguments, command, &exit_code] { exit_code = code_of(run_eval(*arguments, *command)); });
}

}  // namespace mc::cli
