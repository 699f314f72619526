// SPDX-License-Identifier: Apache-2.0
//
// The prompt templates of `bench --prompt-template`: those of the folder data/prompts, by their
// names, and files of users.
#ifndef MC_CLI_PROMPTS_H_
#define MC_CLI_PROMPTS_H_

#include <string>
#include <vector>

#include "core/layout.h"
#include "core/result.h"
#include "eval/pipeline.h"
#include "execute/cuda_driver.h"
#include "sample/suite.h"

namespace mc::cli {

// The prompt that a suite brings or, where it has none, sample::generation_prompt.
inline constexpr const char* kCardPrompt = "card";
inline constexpr const char* kPromptNames = "card, hardware, kernelbench, one-shot";

// Replaces the prompts by the template of a name or a file.  kInvalidInput where it is neither, or
// wants what this machine does not have.
Status apply_prompt_template(const std::string& name, const Layout& layout,
                             const eval::Options& judging, std::vector<sample::Item>& items);

// The device's sizes, a line each, for {{device}}.
std::string facts_of(const execute::CudaDevice& device);

}  // namespace mc::cli

#endif  // MC_CLI_PROMPTS_H_
