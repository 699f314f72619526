// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include <fmt/format.h>

#include "cli/learn/commands.h"
#include "cli/learn/computing.h"
#include "cli/learn/judge_options.h"
#include "cli/numbers.h"
#include "loop/rft.h"

namespace mc::learn {
namespace {

struct RftArguments {
  loop::RftOptions options;
  Computing computing;
  JudgeArguments judge;
};

Result<loop::RftSummary> run(RftArguments& arguments) {
  loop::RftOptions& options = arguments.options;
  MC_TRY(options.judge, judge_command(arguments.judge, options.seed), "rft");
  MC_TRY(const Target target, prepare(arguments.computing), "rft");
  options.policy.device = target.device;
  options.policy.dtype = target.dtype;
  options.policy.workers = static_cast<size_t>(target.workers);
  return loop::run_rft(options);
}

int report(const RftArguments& arguments, const Result<loop::RftSummary>& result) {
  if (!result) return report_error(result.error());
  fmt::print(
      "{} of {} answers passed, {} of {} tasks solved; {} targets, {} repairs: {}\n"
      "kernel structures a solved task: {:.2f}; effective {:.2f} before drawing, {:.2f} after\n",
      result->passed, result->answers, result->solved, result->tasks, result->targets,
      result->repairs, (arguments.options.out / "sft.jsonl").string(), result->clusters,
      result->effective_before, result->effective_after);
  return kExitDone;
}

}  // namespace

void add_rft(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<RftArguments>();
  loop::RftOptions& options = arguments->options;
  arguments->judge.timing = "none";  // RFT ignores the speed of an answer.
  options.generate = {.sampling = {.temperature = 1, .top_p = 1}, .tokens_max = 512};
  CLI::App* command = app.add_subcommand("rft", "Make data of a model's own answers that passed");
  command->add_option("--model", options.model, "A model folder")->required();
  command->add_option("--data", options.data, "Tasks with prompts (rl.jsonl of a forge)")
      ->required();
  command->add_option("--out", options.out, "The folder to make")
      ->required()
      ->check(cli::kOutputFolder);
  command->add_option("--limit", options.limit, "Tasks (default: all)")->check(cli::kPositive);
  command->add_option("--samples", options.samples, "Answers to each task")->check(cli::kPositive);
  command->add_option("--turns", options.turns, "Turns of an answer, at most")
      ->check(cli::whole_range(1, 8));
  command->add_option("--targets", options.targets, "Answers kept of a task, at most")
      ->check(cli::kPositive);
  command
      ->add_option("--repairs", options.repairs,
                   "Failed answers of a solved task that become repairs, at most")
      ->check(cli::kNotNegative);
  command->add_option("--seed", options.seed, "Of tasks, answers and verdicts");
  command->option_defaults()->group("Sampling");
  model::GenerateOptions& generate = options.generate;
  command->add_option("--temperature", generate.sampling.temperature, "Of the answers")
      ->check(cli::number_range(0.01, 10.0));
  command->add_option("--max-tokens", generate.tokens_max, "Longest answer")->check(cli::kPositive);
  command->add_option("--batch", generate.batch, "Answers at a time")->check(cli::kPositive);
  add_judge(*command, arguments->judge);
  add_computing(*command, arguments->computing);
  command->callback([arguments, &exit_code] { exit_code = report(*arguments, run(*arguments)); });
}

}  // namespace mc::learn
