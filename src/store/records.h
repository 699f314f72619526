// SPDX-License-Identifier: Apache-2.0
//
// The records of a run: answers of a model, and what MooreEval said of them.  Their JSON Lines are
// the export of a store, and the form in which other programs hand answers in.
#ifndef MC_STORE_RECORDS_H_
#define MC_STORE_RECORDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "task/verdict.h"

namespace mc::store {

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
  std::string completion;   // The raw answer, or a module.
  std::string reasoning{};  // The thoughts that a server returned beside the answer.
  std::string finish{};     // "stop", "length", or "".
  // Each count is 0 where the source does not report it.
  int64_t num_tokens = 0;        // The whole completion's.
  int64_t reasoning_tokens = 0;  // The reasoning's, which are among them.
  int64_t prompt_tokens = 0;
  double seconds = 0;  // From the request to the answer.
  bool operator==(const Answer&) const = default;
};

struct Judgement {
  AnswerKey key;
  std::optional<double> reward;  // Empty where the verdict is not scored.
  double seconds = 0;            // From the first stage to the verdict.
  std::string feedback{};        // For the model's next turn.
  task::Verdict verdict;
};

// {"id", "sample", "turn", "completion", "num_tokens", "finish", …}; members that are 0 or "" are
// left out, but for the first ones.
std::string json_line(const Answer& answer);
// Reads that, and {"task", "sample", "response"} as `musacoder eval` does.
Result<Answer> answer_from_json(std::string_view line);

// {"id", "sample", "turn", "reward", "seconds", "feedback", "verdict"}.
std::string json_line(const Judgement& judgement);

// A task of a run, as a report shows it.
struct TaskRecord {
  std::string id;
  std::string level{};                  // "level 1", "depth 3", or "".
  std::vector<std::string> families{};  // "softmax"
  std::string code;
  bool operator==(const TaskRecord&) const = default;
};

}  // namespace mc::store

#endif  // MC_STORE_RECORDS_H_
