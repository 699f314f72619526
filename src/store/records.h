// SPDX-License-Identifier: Apache-2.0
//
// The records of a run: a model's answers and their verdicts.  Their JSON Lines are the export
// format of a store, and the format in which other programs provide answers.
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

// The key of an answer: the task's id, the index of the sample, and the index of the turn.
struct AnswerKey {
  std::string id;
  int64_t sample = 0;
  int64_t turn = 0;
  auto operator<=>(const AnswerKey&) const = default;
};
// "kernelbench:1/19#0"; turns after the first are "…#0.1".
std::string to_string(const AnswerKey& key);

struct Answer {
  AnswerKey key;
  std::string completion;   // The raw answer, or a module.
  std::string reasoning{};  // The reasoning that a server returned beside the answer.
  std::string finish{};     // "stop", "length", or "".
  // Each count is 0 if the source does not report it.
  int64_t num_tokens = 0;        // The tokens of the whole completion, including the reasoning.
  int64_t reasoning_tokens = 0;  // The tokens of the reasoning.
  int64_t prompt_tokens = 0;
  double seconds = 0;  // The time from the request to the answer.
  bool operator==(const Answer&) const = default;
};

struct Judgement {
  AnswerKey key;
  std::optional<double> reward;  // Empty if the verdict is not scored.
  double seconds = 0;            // The time from the first stage to the verdict.
  std::string feedback{};        // The feedback for the model's next turn.
  task::Verdict verdict;
};

// {"id", "sample", "turn", "completion", "num_tokens", "finish", …}; of the other members, those
// that are 0 or "" are left out.
std::string json_line(const Answer& answer);
// Reads the line of json_line, or the form of `musacoder eval`: {"task", "sample", "response"}.
Result<Answer> answer_from_json(std::string_view line);

// The judgement as {"id", "sample", "turn", "reward", "seconds", "feedback", "verdict"}.
std::string json_line(const Judgement& judgement);

// A task of a run, as reports show it.
struct TaskRecord {
  std::string id;
  std::string level{};                  // "level 1", "depth 3", or "".
  std::vector<std::string> families{};  // "softmax"
  std::string code;
  bool operator==(const TaskRecord&) const = default;
};

}  // namespace mc::store

#endif  // MC_STORE_RECORDS_H_
