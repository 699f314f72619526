// SPDX-License-Identifier: Apache-2.0
//
// The verifier of rl and rft: --judge, --backend, --dialect, --timing, --jobs, --feedback-tokens.
#ifndef MC_CLI_LEARN_JUDGE_OPTIONS_H_
#define MC_CLI_LEARN_JUDGE_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/result.h"
#include "reward/feedback.h"

namespace mc::learn {

struct JudgeArguments {
  std::string command;  // If empty, the musacoder in the folder of this program.
  std::string backend = "auto";
  std::string dialect = "cuda";
  std::string timing = "quick";
  int jobs = 0;  // 0: half the number of cores, at least 2.
  size_t feedback_tokens = reward::kRepairFeedbackTokens;
};
void add_judge(CLI::App& command, JudgeArguments& arguments);

// The verifier's command.  kNotFound if there is no musacoder.
Result<std::vector<std::string>> judge_command(const JudgeArguments& arguments, uint64_t seed);

}  // namespace mc::learn

#endif  // MC_CLI_LEARN_JUDGE_OPTIONS_H_
