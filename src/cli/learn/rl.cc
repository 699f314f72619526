// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/learn/commands.h"
#include "cli/learn/computing.h"
#include "cli/learn/judge_options.h"
#include "cli/numbers.h"
#include "loop/rl.h"
#include "train/sft.h"

namespace mc::learn {
namespace {

struct RlArguments {
  loop::RlOptions options;
  Computing computing;
  JudgeArguments judge;
  std::string delta = "0.05";
  std::string aggregation = "sequence";
  std::string generate_dtype;
  std::optional<int64_t> pack_tokens;
  loop::EvalOptions eval;
};

constexpr int64_t kPackTokens = 4096;

// Parses --delta: a number or "off".
Status read_delta(const std::string& text, loop::RlOptions& options) {
  if (text == "off") {
    options.step.mirror_pop.reset();
    return ok();
  }
  double delta = 0;
  if (!CLI::detail::lexical_cast(text, delta) || !std::isfinite(delta) || delta < 0) {
    return invalid("--delta " + text + ": a number or off");
  }
  options.step.mirror_pop->delta = delta;
  return ok();
}

// Sets the rules of RL that the options name.
Status read_rules(const RlArguments& arguments, loop::RlOptions& options) {
  MC_TRY_VOID(read_delta(arguments.delta, options), "rl");
  if (arguments.aggregation == "token") options.step.aggregation = rl::TokenMean{};
  if (arguments.aggregation == "dr-grpo") {
    options.step.aggregation = rl::DrGrpo{static_cast<double>(options.generate.tokens_max)};
  }
  if (options.kl_end && options.step.beta == 0) {
    return invalid("--kl-end needs the KL to the first weights: give --beta above 0");
  }
  if (options.overlong_tokens > options.generate.tokens_max) {
    return invalid("--overlong-tokens is beyond --max-tokens");
  }
  if (!arguments.eval.data.empty()) options.eval = arguments.eval;
  return ok();
}

Result<loop::RlResult> run(RlArguments& arguments) {
  loop::RlOptions& options = arguments.options;
  MC_TRY_VOID(read_rules(arguments, options), "rl");
  MC_TRY(options.judge, judge_command(arguments.judge, options.seed), "rl");
  MC_TRY(const Target target, prepare(arguments.computing), "rl");
  options.policy.device = target.device;
  options.policy.dtype = target.dtype;
  options.policy.workers = static_cast<size_t>(target.workers);
  options.policy.pack_tokens =
      arguments.pack_tokens.value_or(target.device.is_cuda() ? train::kPackTokensGpu : kPackTokens);
  const at::ScalarType generate_dtype =
      arguments.generate_dtype.empty() ? target.dtype : dtype_of(arguments.generate_dtype);
  if (generate_dtype != target.dtype) options.policy.generate_dtype = generate_dtype;
  const bool is_terminal = ::isatty(STDERR_FILENO) == 1;
  const auto result = loop::run_rl(options, [&](const loop::RlProgress& progress) {
    if (!is_terminal) return;
    fmt::print(stderr, "\r\033[Kstep {}/{}  reward {:.3f}  first turn {:.1f} %  {:.0f} s",
               progress.step, options.steps, progress.reward, 100 * progress.accuracy,
               progress.elapsed_s);
    std::fflush(stderr);
  });
  if (is_terminal) std::fputs("\n", stderr);
  return result;
}

int report(const RlArguments& arguments, const Result<loop::RlResult>& result) {
  if (!result) return report_error(result.error());
  fmt::print("{} steps, {} episodes in {:.0f} s, reward {:.3f}, first turn {:.1f} %: {}\n",
             result->last.step, result->episodes, result->last.elapsed_s, result->last.reward,
             100 * result->last.accuracy, (arguments.options.run / "model").string());
  if (!result->ended.empty()) fmt::print("the run ended early: {}\n", result->ended);
  return kExitDone;
}

void add_rollout_options(CLI::App& command, RlArguments& arguments) {
  loop::RlOptions& options = arguments.options;
  command.add_option("--prompts", options.prompts, "Prompts of a step")->check(cli::kPositive);
  command.add_option("--samples", options.samples, "Answers to each prompt")
      ->check(cli::whole_range(2, 1024));
  command.option_defaults()->group("Episodes");
  command.add_option("--turns", options.turns, "Turns of an episode, at most")
      ->check(cli::whole_range(1, 8));
  model::GenerateOptions& generate = options.generate;
  command.add_option("--temperature", generate.sampling.temperature, "Of answers and of the loss")
      ->check(cli::number_range(0.01, 10.0));
  command.add_option("--top-p", generate.sampling.top_p, "Probability of the tokens to draw from")
      ->check(cli::number_range(1e-6, 1.0));
  command.add_option("--max-tokens", generate.tokens_max, "Longest answer")->check(cli::kPositive);
  command
      .add_option("--batch", options.batch,
                  "Answers at a time (default: 32; on a GPU all of a wave, up to 256)")
      ->check(cli::kPositive);
  command
      .add_option("--filter-zero-spread", options.refills_max,
                  "Leaves groups of equal rewards out of the update, and answers the next prompts\n"
                  "in their place, in N rounds at most (2 where N is missing; default: off)")
      ->type_name("[N]")
      ->expected(0, 1)
      ->default_str("2")
      ->check(cli::whole_range(0, 16));
  command
      .add_option("--stale", options.stale,
                  "The generator gets the trainer's weights every K + 1 steps")
      ->type_name("K")
      ->check(cli::kNotNegative);
  command
      .add_option("--generate-dtype", arguments.generate_dtype,
                  "float32 or bfloat16, for the generator alone (default: --dtype)")
      ->check(cli::one_of({"float32", "bfloat16"}));
}

void add_rule_options(CLI::App& command, RlArguments& arguments) {
  command.option_defaults()->group("Rules (docs/rl.md)");
  loop::RlOptions& options = arguments.options;
  command.add_option("--alpha", options.prime_echo.alpha, "PrimeEcho: weight of the first turn")
      ->check(cli::number_range(0.0, 1.0));
  command
      .add_option("--b-early", options.prime_echo.b_early,
                  "PrimeEcho: for a first pass in turn 1, 2, ...; 0 for none")
      ->delimiter(',')
      ->check(cli::kNotNegative);
  command.add_option("--delta", arguments.delta, "MirrorPop: largest drift, or off");
  cli::add_choice(command, "--drift-mean", options.step.mirror_pop->mean,
                  {{"absolute", rl::DriftMean::kAbsolute}, {"signed", rl::DriftMean::kSigned}},
                  "MirrorPop: the mean of drift that --delta bounds, absolute or (to compare) "
                  "signed");
  command.add_option("--bdr", options.retry.probability, "Probability that a prompt is a replay")
      ->check(cli::number_range(0.0, 1.0));
  cli::add_choice(command, "--bdr-shows", options.replays_show_failure,
                  {{"failure", true}, {"task", false}},
                  "What a replay's prompt has: the failure behind the task, or (to compare) the "
                  "task");
  command.add_option("--bdr-capacity", options.retry.capacity, "Failed tasks kept for replays")
      ->check(cli::kPositive);
  command.add_option("--beta", options.step.beta, "Weight of the KL; 0: no reference")
      ->check(cli::kNotNegative);
  command.add_option("--eps-low", options.step.clip.eps_low, "Clipping of the ratio, below 1")
      ->check(cli::number_range(0.0, 1.0));
  command.add_option("--eps-high", options.step.clip.eps_high, "Clipping of the ratio, above 1")
      ->check(cli::kNotNegative);
  command
      .add_option("--aggregation", arguments.aggregation,
                  "Weights of tokens: sequence (mean of means), token (mean) or dr-grpo")
      ->check(cli::one_of({"sequence", "token", "dr-grpo"}));
  cli::add_choice(command, "--advantage-scale", options.step.advantage.scale,
                  {{"std", rl::AdvantageScale::kStd}, {"none", rl::AdvantageScale::kNone}},
                  "Advantages divided by the group's spread (std) or not (none, as Dr.GRPO)");
  command
      .add_option("--std-floor", options.step.advantage.std_floor,
                  "The spread of a group counts as at least this")
      ->check(cli::kNotNegative);
}

void add_score_options(CLI::App& command, RlArguments& arguments) {
  loop::RlOptions& options = arguments.options;
  command.option_defaults()->group("Score of an answer (docs/rl.md)");
  command
      .add_option("--overlong-tokens", options.overlong_tokens,
                  "The reward falls by up to 1 over so many tokens before --max-tokens; 0: not")
      ->check(cli::kNotNegative);
  cli::add_choice(command, "--reward-order", options.shuffles_rewards,
                  {{"verdicts", false}, {"shuffled", true}},
                  "verdicts, or (to compare) shuffled within each group");
  rl::TrainingScoreOptions& score = options.score;
  command.add_option("--lambda", score.score.lambda, "Weight of the speed-up")
      ->check(cli::kNotNegative);
  command.add_option("--nu-max", score.score.nu_max, "Largest speed-up beyond 1 that counts")
      ->check(cli::kNotNegative);
  command
      .add_option("--speed-dead-zone", score.speed.dead_zone,
                  "Speed-ups up to here count as 1; 0: none")
      ->check(cli::kNotNegative);
  command.add_option("--speed-step", score.speed.step, "Speed-ups are rounded to it; 0: not")
      ->check(cli::kNotNegative);
}

void add_eval_options(CLI::App& command, loop::EvalOptions& eval) {
  command.option_defaults()->group("Evaluation on the way (default: off)");
  auto* data = command.add_option("--eval-data", eval.data, "Held-out tasks, as --data");
  command.add_option("--eval-steps", eval.steps, "Steps from one evaluation to the next")
      ->check(cli::kPositive)
      ->needs(data);
  command.add_option("--eval-tasks", eval.tasks, "Tasks of an evaluation, at most")
      ->check(cli::kPositive)
      ->needs(data);
}

void add_step_options(CLI::App& command, RlArguments& arguments) {
  loop::RlOptions& options = arguments.options;
  command.option_defaults()->group("Steps and optimiser");
  command.add_option("--updates", options.updates, "Passes over a step's episodes")
      ->check(cli::kPositive);
  command
      .add_option("--mini-batches", options.mini_batches,
                  "Parts of a pass, by prompts; each is a step of the optimiser")
      ->check(cli::kPositive);
  command
      .add_option("--kl-stop", options.kl_stop,
                  "No further update of a step from this KL to the old policy on (default: off)")
      ->check(cli::kNotNegative);
  command
      .add_option(
          "--kl-end", options.kl_end,
          "The run ends behind a step with a KL to the first weights beyond this (default:\n"
          "off)")
      ->check(cli::kNotNegative);
  train::OptimizerOptions& optimizer = options.policy.optimizer;
  command.add_option("--lr", optimizer.lr, "Learning rate")->check(cli::kNotNegative);
  command.add_option("--warmup", optimizer.warmup, "Share of the run")
      ->check(cli::number_range(0, 1));
  command.add_option("--weight-decay", optimizer.weight_decay, "Of matrices")
      ->check(cli::kNotNegative);
  command.add_option("--clip", optimizer.norm_max, "Largest norm of the gradient")
      ->check(cli::kPositive);
  command
      .add_option("--pack-tokens", arguments.pack_tokens,
                  fmt::format("Tokens of a pass through the model (default: {}; on a GPU {})",
                              kPackTokens, train::kPackTokensGpu))
      ->check(cli::kPositive);
  command
      .add_option("--checkpoint-steps", options.checkpoint_steps,
                  "Steps between checkpoints (default: a minute)")
      ->check(cli::kPositive);
}

}  // namespace

void add_rl(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<RlArguments>();
  loop::RlOptions& options = arguments->options;
  options.generate = {.sampling = {.temperature = 0.9, .top_p = 1}, .tokens_max = 512};
  options.policy.optimizer = {.lr = 1e-6, .lr_end = 1, .warmup = 0.1, .norm_max = 0.5};
  CLI::App* command = app.add_subcommand("rl", "Train a model on verdicts of its own answers");
  command->add_option("--model", options.model, "A model folder")->required();
  command->add_option("--data", options.data, "Tasks with prompts (rl.jsonl of a forge)")
      ->required();
  command->add_option("--out", options.run, "The run's folder")
      ->required()
      ->check(cli::kOutputFolder);
  command->add_option("--steps", options.steps, "Length of the run")->check(cli::kPositive);
  command->add_flag("--resume", options.resume, "Go on with the run in --out, if there is one");
  command->add_option("--replay", options.replay,
                      "Take the episodes of this run's folder in place of new ones");
  command->add_option("--seed", options.seed, "Of prompts, answers and verdicts");
  add_rollout_options(*command, *arguments);
  add_rule_options(*command, *arguments);
  add_score_options(*command, *arguments);
  add_step_options(*command, *arguments);
  add_eval_options(*command, arguments->eval);
  add_judge(*command, arguments->judge);
  add_computing(*command, arguments->computing);
  command->callback([arguments, &exit_code] { exit_code = report(*arguments, run(*arguments)); });
}

}  // namespace mc::learn
