// SPDX-License-Identifier: Apache-2.0
#include "cli/learn/judge_options.h"

#include <algorithm>
#include <sstream>
#include <thread>

#include "cli/numbers.h"
#include "core/layout.h"

namespace mc::learn {

void add_judge(CLI::App& command, JudgeArguments& arguments) {
  command.option_defaults()->group("Verifier");
  command.add_option(
      "--judge", arguments.command,
      "Another verifier: bulk (the forge's; needs --allow-unsandboxed), or a command "
      "that reads questions and replies, a line each");
  command.add_flag("--allow-unsandboxed", arguments.allows_unsandboxed,
                   "With --judge bulk: the model's Python runs without a sandbox, as this user");
  command.add_option("--backend", arguments.backend, "Of the verifier: auto, cpu or cuda");
  command.add_option("--dialect", arguments.dialect, "Of the answers: cuda or musa")
      ->check(cli::one_of({"cuda", "musa"}));
  command
      .add_option("--timing", arguments.timing,
                  "Of answers that passed, on a device: quick, full, or none (1 for each)")
      ->check(cli::one_of({"quick", "full", "none"}));
  command.add_option("--jobs,-j", arguments.jobs, "Answers judged at once (default: cores / 2)")
      ->check(cli::whole_range(1, 256));
  command.add_option("--feedback-tokens", arguments.feedback_tokens, "Bound of the feedback")
      ->check(cli::whole_range(50, 100000));
}

Result<std::vector<std::string>> judge_command(const JudgeArguments& arguments, uint64_t seed) {
  std::vector<std::string> words;
  const bool is_bulk = arguments.command == "bulk";
  if (!arguments.command.empty() && !is_bulk) {
    std::istringstream stream(arguments.command);
    for (std::string word; stream >> word;) words.push_back(word);
    if (words.empty()) return invalid("--judge: expected bulk or a command, got blanks");
    return words;
  }
  if (is_bulk && !arguments.allows_unsandboxed) {
    return invalid(
        "--judge bulk runs the model's Python without a sandbox, as this user: add "
        "--allow-unsandboxed if you trust the model, or leave --judge out");
  }
  MC_TRY(const Layout layout, find_layout(), "the verifier");
  const int pairs = static_cast<int>(std::thread::hardware_concurrency()) / 2;
  const int jobs = arguments.jobs > 0 ? arguments.jobs : std::max(2, pairs);
  words = {(layout.prefix / "bin/musacoder").string(),
           "eval",
           "--stream",
           "--seed",
           std::to_string(seed),
           "--jobs",
           std::to_string(jobs),
           "--feedback-tokens",
           std::to_string(arguments.feedback_tokens)};
  if (is_bulk) {
    words.insert(words.end(), {"--bulk", "--allow-unsandboxed"});
    if (!arguments.shows_feedback) words.emplace_back("--no-diagnosis");
    return words;
  }
  words.insert(words.end(), {"--backend", arguments.backend, "--dialect", arguments.dialect});
  if (arguments.timing == "none") {
    words.emplace_back("--no-timing");
  } else {
    words.insert(words.end(), {"--timing", arguments.timing});
  }
  return words;
}

}  // namespace mc::learn
