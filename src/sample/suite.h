// SPDX-License-Identifier: Apache-2.0
//
// The items of a benchmark suite: tasks, each with the prompt that requests an answer.
//
// A suite is a file of rows as the forge writes them (test.jsonl: `id`, `prompt` as messages,
// `reward_model.ground_truth`, `extra_info`), or any input of task::load_suite: a KernelBench
// checkout, a folder of level*.jsonl, a folder of families, a folder of .py files.  Rows contain
// their own prompts; other tasks get the prompt of generation_prompt.
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
  task::Task task;  // Its id is the row's, or that of the suite: "kernelbench:1/19", "family/name".
  Messages prompt;
  std::string level;  // "level 1", "depth 3"; "" if the suite has no levels.
  // Families such as "softmax"; a task counts for each of its families.
  std::vector<std::string> families;
};

// Loads the items in the suite's order.  Numbered suites have the name "kernelbench". kNotFound, or
// kInvalidInput, which names the file and line of the fault.
Result<std::vector<Item>> load_bench_suite(const std::filesystem::path& path,
                                           task::Dialect dialect = task::Dialect::kCuda,
                                           const std::string& language = task::kAnyLanguage,
                                           const std::string& musa_architecture = "mp_31");

// The input of `musacoder-learn generate --prompts`: one line {"id", "prompt"} for each item.
std::string prompt_lines(std::span<const Item> items);

// The default prompt.  It requests a complete module with ModelNew and own kernels, in CUDA or
// MUSA, in one code fence.
Messages generation_prompt(const task::Task& task, task::Dialect dialect,
                           const std::string& language = task::kAnyLanguage,
                           const std::string& musa_architecture = "mp_31");
// The default prompt without the task.  The rules are for the dialect and MUSA's architecture,
// except for Triton.
std::string prompt_rules(task::Dialect dialect, const std::string& language = task::kAnyLanguage,
                         const std::string& musa_architecture = "mp_31");

// The values of the names that a template may use; a value is computed only if the template uses
// it. The name {{task}}, the task's program, is always defined.
using TemplateValue = std::function<Result<std::string>()>;
using TemplateValues = std::map<std::string, TemplateValue>;

// Replaces each prompt by the text of a file, in which names in double braces are replaced by their
// values.  kInvalidInput if the file does not contain {{task}}, or contains an unknown name.
Status apply_template(const std::filesystem::path& path, const TemplateValues& values,
                      std::vector<Item>& items);

}  // namespace mc::sample

#endif  // MC_SAMPLE_SUITE_H_
