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
  command.add_option("--judge", arguments.command,
                     "Another verifier: a command that reads questions and replies, a line each");
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
  if (!arguments.command.empty()) {
    std::istringstream stream(arguments.command);
    for (std::string word; stream >> word;) words.push_back(word);
    if (words.empty()) return invalid("--judge: expected a command, got blanks");
    return words;
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
           std::to_string(arguments.feedback_tokens),
           "--backend",
           arguments.backend,
           "--dialect",
           arguments.dialect};
  if (arguments.timing == "none") {
    words.emplace_back("--no-timing");
  } else {
    words.insert(words.end(), {"--timing", arguments.timing});
  }
  return words;
}

}  // namespace mc::learn
