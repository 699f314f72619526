// SPDX-License-Identifier: Apache-2.0
//
// An episode: a prompt, the answer to it, and where that failed the attempts to repair it with the
// verifier's feedback.  Only the first answer is trained, so its tokens and log-probabilities are
// kept; of later turns the text.
//
// RUN/episodes.jsonl has one a line, in order of step, group and sample.  With the prompts' tokens,
// log-probabilities and scores in it, an update can be done again without generator and verifier.
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

// A task with the messages that ask for it: a row of the forge's rl.jsonl.
struct Prompt {
  task::Task task;
  std::vector<model::Message> messages;
  std::optional<task::Dialect> dialect = std::nullopt;  // The answers'; absent: the verifier's own.
};

// Rows {"id", "prompt": [messages], "label" or "reward_model.ground_truth": code of the task} with
// "dialect", in the row or its "extra_info", or without.  kInvalidInput names the line.
Result<std::vector<Prompt>> read_prompts(const std::filesystem::path& path);

// A fresh prompt of two parts: the task, and the failed code (rl::code_of) with its feedback.
std::vector<model::Message> replay_messages(const Prompt& prompt, const std::string& code,
                                            const std::string& feedback);

struct Turn;

// Adds a failed answer, without its reasoning, and the request to repair it.
void add_repair_turn(const Turn& failed, std::vector<model::Message>& messages);

struct Turn {
  std::string answer;
  bool is_stopped = false;  // The end came by an end token, not by the length limit.
  int64_t num_tokens = 0;
  Judgement judgement;
  bool operator==(const Turn&) const = default;
};

struct Episode {
  int64_t step = 0;   // The step of the policy that wrote it, from 0.
  int64_t group = 0;  // The prompt's slot in the step.
  int64_t sample = 0;
  std::string task;        // Its id.
  bool is_replay = false;  // The replay of a failed answer (BDR).
  std::vector<int32_t> prompt;
  std::vector<int32_t> tokens;  // The tokens of the first answer, with the token that ended it.
  // The log-probabilities of those, by the generator, under softmax(logits / T).
  std::vector<double> log_probs;
  std::vector<Turn> turns;
  bool operator==(const Episode&) const = default;

  std::vector<std::optional<double>> scores() const;  // The scores of the turns.
  bool passed() const;                                // In some turn.
};

// Divides the episodes of a step into its groups.
// REQUIRES: the episodes of a group follow one another.
std::vector<std::span<const Episode>> groups_of(std::span<const Episode> episodes);

std::string json_line(const Episode& episode);
Result<Episode> episode_from_json(const std::string& line);

// The same for many, a line each.
std::string json_lines(std::span<const Episode> episodes);
Result<std::vector<Episode>> episodes_from_lines(const std::string& text);

}  // namespace mc::loop

#endif  // MC_LOOP_EPISODE_H_
