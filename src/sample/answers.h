// SPDX-License-Identifier: Apache-2.0
//
// Answers that a model gave, as they lie in files.
//
//   MC_TRY(auto answers, load_answers("answers.jsonl", items), "--answers");
//   MC_TRY(auto answers, load_run_folder("runs/my_run", items), "--runs");
#ifndef MC_SAMPLE_ANSWERS_H_
#define MC_SAMPLE_ANSWERS_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/result.h"
#include "sample/suite.h"

namespace mc::sample {

// Which answer: the task's id, the sample of 0, 1, …, the turn of 0, 1, ….
struct AnswerKey {
  std::string id;
  int64_t sample = 0;
  int64_t turn = 0;
  auto operator<=>(const AnswerKey&) const = default;
};
std::string to_string(const AnswerKey& key);  // "kernelbench:1/19#0", with turns "…#0.1".

struct Answer {
  AnswerKey key;
  std::string completion;  // The raw answer, or a module.
  int64_t num_tokens = 0;  // 0 where the source does not tell.
  std::string finish;      // "stop", "length", or "".
};

// {"id", "sample", "turn", "completion", "num_tokens", "finish"}; `turn` is left out where 0.
std::string json_line(const Answer& answer);
// Reads that, and {"task", "sample", "response"} as `musacoder eval` does.
Result<Answer> answer_from_json(std::string_view line);

// The answers of a JSON Lines file to tasks of the suite; those to other tasks are an error, since
// somebody mixed up files.  Ordered by key.
Result<std::vector<Answer>> load_answers(const std::filesystem::path& path,
                                         std::span<const Item> items);

// KernelBench's run folder: level_X_problem_Y_sample_Z_kernel.py, for tasks "kernelbench:X/Y".
// Other files are passed over.
Result<std::vector<Answer>> load_run_folder(const std::filesystem::path& folder,
                                            std::span<const Item> items);

}  // namespace mc::sample

#endif  // MC_SAMPLE_ANSWERS_H_
