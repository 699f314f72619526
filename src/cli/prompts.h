// SPDX-License-Identifier: Apache-2.0
//
// The prompt templates of `bench --prompt-template`: those in data/prompts, by name, and files of
// users.
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

// The template that keeps the prompt of the suite or, if it has none, that of
// sample::generation_prompt.
inline constexpr const char* kCardPrompt = "card";
inline constexpr const char* kPromptNames = "card, hardware, kernelbench, one-shot";

// Replaces the prompts by a template, which is given by its name or as a file.  kInvalidInput if it
// does not exist, or needs something that this machine does not have.
Status apply_prompt_template(const std::string& name, const Layout& layout,
                             const eval::Options& judging, std::vector<sample::Item>& items);

// The text for {{device}}: the device's sizes, one per line.
std::string facts_of(const execute::CudaDevice& device);

}  // namespace mc::cli

#endif  // MC_CLI_PROMPTS_H_
