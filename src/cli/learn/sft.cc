// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/learn/commands.h"
#include "cli/learn/computing.h"
#include "cli/learn/in_ranks.h"
#include "cli/numbers.h"
#include "train/sft.h"

namespace mc::learn {
namespace {

std::string clock_text(double seconds) {
  const auto whole = static_cast<int64_t>(seconds);
  return whole < 3600 ? fmt::format("{}:{:02}", whole / 60, whole % 60)
                      : fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

// A line that is redrawn in place on a terminal; without a terminal, nothing is printed.
class LiveLine {
 public:
  void draw(const train::Progress& progress) {
    if (!is_terminal_) return;
    const train::StepMetrics& m = progress.metrics;
    const double rest =
        progress.share > 0 ? m.elapsed_s * (1 - progress.share) / progress.share : 0;
    const std::string of = progress.steps ? fmt::format("/{}", *progress.steps) : "";
    fmt::print(stderr, "\r\033[Kstep {}{}  loss {:.4f}  {:.0f} tokens/s  {} left", m.step, of,
               m.loss, m.tokens_per_s, clock_text(rest));
    std::fflush(stderr);
    drawn_ = true;
  }
  ~LiveLine() {
    if (drawn_) std::fputs("\n", stderr);
  }

 private:
  const bool is_terminal_ = ::isatty(STDERR_FILENO) == 1;
  bool drawn_ = false;
};

void report(const train::SftOptions& options, const train::SftResult& result) {
  fmt::print("{} steps, {} tokens of {} conversations in {} ({:.0f} tokens/s), loss {:.4f}: {}\n",
             result.steps, result.tokens, result.conversations, clock_text(result.elapsed_s),
             static_cast<double>(result.tokens) / result.elapsed_s, result.loss,
             (options.run / "model").string());
  if (result.too_long > 0) {
    fmt::print(stderr, "{} conversations had more tokens than --length-max and were left out\n",
               result.too_long);
  }
}

Status run(train::SftOptions options, const Computing& computing, const train::RankSetup& setup) {
  if (options.steps && options.minutes) {
    return invalid("--steps and --minutes: give one of them");
  }
  MC_TRY(const Target target, prepare(computing, setup), "sft");
  options.device = target.device;
  options.dtype = target.dtype;
  options.workers = static_cast<size_t>(target.workers);
  options.rank = setup;
  const bool is_first = setup.rank == 0;
  std::optional<train::SftResult> result;
  {
    LiveLine line;
    MC_TRY(result,
           train::run_sft(options,
                          [&](const train::Progress& progress) {
                            if (is_first) line.draw(progress);
                          }),
           "sft");
  }
  if (is_first) report(options, *result);
  return ok();
}

void add_run_options(CLI::App& command, train::SftOptions& options) {
  command.add_option("--model", options.model, "A model folder")->required();
  command.add_option("--data", options.data, "Conversations, as JSON Lines")->required();
  command.add_option("--out", options.run, "The run's folder")
      ->required()
      ->check(cli::kOutputFolder);
  command.add_option("--steps", options.steps, "Length of the run (default: the data once)")
      ->check(cli::kPositive);
  command.add_option("--minutes", options.minutes, "Length of the run")->check(cli::kPositive);
  command.add_flag("--resume", options.resume, "Go on with the run in --out, if there is one");
  command
      .add_option("--checkpoint-steps", options.checkpoint_steps,
                  "Steps between checkpoints (default: a minute)")
      ->check(cli::kPositive);
  command.add_option("--seed", options.seed, "Of the order of the data");
}

void add_step_options(CLI::App& command, train::SftOptions& options) {
  command.option_defaults()->group("Steps and optimiser");
  command.add_option("--batch-tokens", options.batch_tokens, "Tokens of a step")
      ->check(cli::kPositive);
  command
      .add_option("--pack-tokens", options.pack_tokens,
                  fmt::format("Tokens of a pass through the model (default: {}; on a GPU {})",
                              train::kPackTokens, train::kPackTokensGpu))
      ->check(cli::kPositive);
  command.add_flag("--recompute", options.recomputes,
                   "Compute blocks again for their gradients: slower, in much less memory");
  const auto by_kind = [](const std::string& what, double scratch, double pretrained) {
    return fmt::format("{} (default: {}; of a pretrained model {})", what, scratch, pretrained);
  };
  const train::SftDefaults& scratch = train::kFromScratchDefaults;
  const train::SftDefaults& pretrained = train::kPretrainedDefaults;
  command
      .add_option(
          "--length-max", options.length_max,
          by_kind("Longest conversation, in tokens", static_cast<double>(scratch.length_max),
                  static_cast<double>(pretrained.length_max)))
      ->check(cli::kPositive);
  train::OptimizerOptions& optimizer = options.optimizer;
  command
      .add_option("--lr", options.lr,
                  by_kind("Learning rate at its peak", scratch.lr, pretrained.lr))
      ->check(cli::kNotNegative);
  command.add_option("--lr-end", optimizer.lr_end, "Share of it at the end")
      ->check(cli::kNotNegative);
  command.add_option("--warmup", optimizer.warmup, "Share of the run")
      ->check(cli::number_range(0, 1));
  command
      .add_option("--weight-decay", options.weight_decay,
                  by_kind("Of matrices", scratch.weight_decay, pretrained.weight_decay))
      ->check(cli::kNotNegative);
  command.add_option("--clip", optimizer.norm_max, "Largest norm of the gradient")
      ->check(cli::kPositive);
}

}  // namespace

void add_sft(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<train::SftOptions>();
  auto computing = std::make_shared<Computing>();
  CLI::App* command = app.add_subcommand("sft", "Train a model on conversations");
  add_run_options(*command, *options);
  add_step_options(*command, *options);
  add_computing(*command, *computing);
  auto processes = std::make_shared<int>(1);
  add_processes(*command, *processes);
  command->callback([options, computing, processes, &exit_code] {
    exit_code = run_in_ranks(*processes, [&](const train::RankSetup& setup) {
      return run(*options, *computing, setup);
    });
  });
}

}  // namespace mc::learn
