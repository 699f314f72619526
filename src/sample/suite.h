// SPDX-License-Identifier: Apache-2.0
//
// The items that a model is measured on: tasks, each with the prompt that asks for it.
//
// A bench suite is a file of rows as the forge writes them (test.jsonl: `id`, `prompt` as messages,
// `reward_model.ground_truth`, `extra_info`), or anything that task::load_suite reads: a
// KernelBench checkout, a folder of level*.jsonl, a folder of families, a folder of .py files. Rows
// bring their own prompts; all else gets that of generation_prompt.
//
//   MC_TRY(std::vector<Item> items, load_bench_suite("forge/test.jsonl"), "--suite");
#ifndef MC_SAMPLE_SUITE_H_
#define MC_SAMPLE_SUITE_H_

#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "task/task.h"

namespace mc::sample {

struct Message {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};
using Messages = std::vector<Message>;

struct Item {
  task::Task task;  // Its id is the row's, or the suite's: "kernelbench:1/19", "family/name".
  Messages prompt;
  std::string level;                  // "level 1", "depth 3"; "" where the suite has none.
  std::vector<std::string> families;  // "softmax"; a task counts for each of them.
};

// In the suite's order.  Numbered suites have the name "kernelbench".
// kNotFound, or kInvalidInput with the file and line that cannot be used.
Result<std::vector<Item>> load_bench_suite(const std::filesystem::path& path,
                                           task::Dialect dialect = task::Dialect::kCuda,
                                           const std::string& language = task::kAnyLanguage,
                                           const std::string& musa_architecture = "mp_31");

// The input of `musacoder-learn generate --prompts` reads it: {"id", "prompt"} a line.
std::string prompt_lines(std::span<const Item> items);

// Asks for a complete module with ModelNew and own kernels, in CUDA or MUSA, in one fenced block.
// Text of ours.
Messages generation_prompt(const task::Task& task, task::Dialect dialect,
                           const std::string& language = task::kAnyLanguage,
                           const std::string& musa_architecture = "mp_31");
// That prompt without the task. In any language but Triton, kernels are the dialect's, for MUSA's
// architecture.
std::string prompt_rules(task::Dialect dialect, const std::string& language = task::kAnyLanguage,
                         const std::string& musa_architecture = "mp_31");

// The texts of the names that a template may have, each made where a template has it.  {{task}},
// the task's program, is always among them.
using TemplateValue = std::function<Result<std::string>()>;
using TemplateValues = std::map<std::string, TemplateValue>;

// Replaces each prompt by the text of a file, in which names in double braces have their values.
// kInvalidInput where the file has no {{task}}, or another name in double braces.
Status apply_template(const std::filesystem::path& path, const TemplateValues& values,
                      std::vector<Item>& items);

}  // namespace mc::sample

#endif  // MC_SAMPLE_SUITE_H_
