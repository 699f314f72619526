// SPDX-License-Identifier: Apache-2.0
//
// An episode: a prompt, the answer to it and, after failures, the attempts to repair the answer
// with the verifier's feedback.  Only the first answer is trained, so only its tokens and
// log-probabilities are kept; of later turns, only the text.
//
// RUN/episodes.jsonl contains one episode per line, ordered by step, group and sample.  The lines
// contain the prompts' tokens, the log-probabilities and the scores, so an update can be repeated
// without generator and verifier.
#ifndef MC_LOOP_EPISODE_H_
#define MC_LOOP_EPISODE_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "loop/judge.h"
#include "model/chat.h"
#include "task/task.h"

namespace mc::loop {

// A task with the chat messages that request an answer: a row of the forge's rl.jsonl.
struct Prompt {
  task::Task task;
  std::vector<model::Message> messages;
  // The dialect of the answers; if absent, the verifier's default.
  std::optional<task::Dialect> dialect = std::nullopt;
};

// Reads rows {"id", "prompt": [messages], "label" or "reward_model.ground_truth": the task's code}.
// "dialect" is optional, in the row or in its "extra_info".  kInvalidInput names the faulty line.
Result<std::vector<Prompt>> read_prompts(const std::filesystem::path& path);

// The messages of a replay: the task, and the failed code (rl::code_of) with its feedback.
std::vector<model::Message> replay_messages(const Prompt& prompt, const std::string& code,
                                            const std::string& feedback);

struct Turn;

// Appends a failed answer, without its reasoning, and the request to repair it.
void add_repair_turn(const Turn& failed, std::vector<model::Message>& messages);

struct Turn {
  std::string answer;
  bool is_stopped = false;  // True if the answer ended with an end token, not at the length limit.
  int64_t num_tokens = 0;
  Judgement judgement;
  bool operator==(const Turn&) const = default;
};

struct Episode {
  int64_t step = 0;   // The step that generated the episode, from 0.
  int64_t group = 0;  // The index of the prompt within the step.
  int64_t sample = 0;
  std::string task;        // The id of the task.
  bool is_replay = false;  // True if the prompt is the replay of a failed answer (BDR).
  std::vector<int32_t> prompt;
  std::vector<int32_t> tokens;  // The tokens of the first answer, including its end token.
  // The generator's log-probabilities of these tokens, under softmax(logits / T).
  std::vector<double> log_probs;
  std::vector<Turn> turns;
  bool operator==(const Episode&) const = default;

  std::vector<std::optional<double>> scores() const;  // The scores of the turns.
  bool passed() const;                                // True if any turn passed.
};

// Splits the episodes of a step into its groups. REQUIRES: the episodes of a group are adjacent.
std::vector<std::span<const Episode>> groups_of(std::span<const Episode> episodes);

std::string json_line(const Episode& episode);
Result<Episode> episode_from_json(const std::string& line);

// The JSON lines of many episodes.
std::string json_lines(std::span<const Episode> episodes);
Result<std::vector<Episode>> episodes_from_lines(const std::string& text);

}  // namespace mc::loop

#endif  // MC_LOOP_EPISODE_H_
