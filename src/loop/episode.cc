// SPDX-License-Identifier: Apache-2.0
#include "loop/episode.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/fd.h"
#include "legality/extract.h"
#include "reward/feedback.h"

namespace mc::loop {
namespace {

using Json = nlohmann::ordered_json;

std::string text_at(const Json& json, const char* key) {
  return json.is_object() && json.contains(key) && json[key].is_string()
             ? json[key].get<std::string>()
             : "";
}

Result<std::optional<task::Dialect>> dialect_of(const Json& row) {
  std::string name = text_at(row, "dialect");
  if (name.empty() && row.contains("extra_info")) name = text_at(row["extra_info"], "dialect");
  if (name.empty()) return std::optional<task::Dialect>();
  for (const task::Dialect dialect : task::kDialects) {
    if (name == to_string(dialect)) return std::optional(dialect);
  }
  return invalid("\"dialect\": expected cuda or musa, got \"" + name + '"');
}

Result<Prompt> parse_prompt(const std::string& line) {
  const Json row = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!row.is_object()) return invalid("not a JSON object");
  Prompt prompt;
  prompt.task.id = prompt.task.name = text_at(row, "id");
  if (prompt.task.id.empty()) return invalid("\"id\" is missing, or is no text");
  prompt.task.code = text_at(row, "label");
  if (prompt.task.code.empty() && row.contains("reward_model")) {
    prompt.task.code = text_at(row["reward_model"], "ground_truth");
  }
  if (prompt.task.code.empty()) return invalid("\"label\" is missing: the code of the task");
  MC_TRY(prompt.dialect, dialect_of(row), "row");
  if (!row.contains("prompt") || !row["prompt"].is_array() || row["prompt"].empty()) {
    return invalid("\"prompt\" is missing, or is no list of messages");
  }
  for (const Json& entry : row["prompt"]) {
    if (text_at(entry, "role").empty() || text_at(entry, "content").empty()) {
      return invalid("a message's \"role\" or \"content\" is missing, or is no text");
    }
    prompt.messages.push_back({text_at(entry, "role"), text_at(entry, "content")});
  }
  return prompt;
}

Json json_of(const Turn& turn) {
  const Judgement& judgement = turn.judgement;
  Json json;
  json["answer"] = turn.answer;
  json["stopped"] = turn.is_stopped;
  json["num_tokens"] = turn.num_tokens;
  json["outcome"] = judgement.outcome;
  json["s"] = judgement.s ? Json(*judgement.s) : Json();
  json["q"] = judgement.q;
  json["nu"] = judgement.nu ? Json(*judgement.nu) : Json();
  json["stage"] = judgement.stage ? Json(static_cast<int>(*judgement.stage)) : Json();
  json["feedback"] = judgement.feedback;
  return json;
}

Turn turn_of(const Json& json) {
  Turn turn;
  turn.answer = json.at("answer").get<std::string>();
  turn.is_stopped = json.at("stopped").get<bool>();
  turn.num_tokens = json.at("num_tokens").get<int64_t>();
  turn.judgement.outcome = json.at("outcome").get<std::string>();
  if (!json.at("s").is_null()) turn.judgement.s = json["s"].get<double>();
  turn.judgement.q = json.at("q").get<double>();
  if (!json.at("nu").is_null()) turn.judgement.nu = json["nu"].get<double>();
  if (!json.at("stage").is_null()) {
    turn.judgement.stage = static_cast<rl::Stage>(json["stage"].get<int>());
  }
  turn.judgement.feedback = json.at("feedback").get<std::string>();
  return turn;
}

}  // namespace

Result<std::vector<Prompt>> read_prompts(const std::filesystem::path& path) {
  std::ifstream stream(path);
  if (!stream) return system_error(ErrorCode::kNotFound, "cannot read " + path.string());
  std::vector<Prompt> prompts;
  std::string line;
  for (int64_t number = 1; std::getline(stream, line); ++number) {
    if (line.empty()) continue;
    MC_TRY(Prompt prompt, parse_prompt(line), path.string() + ": line " + std::to_string(number));
    prompts.push_back(std::move(prompt));
  }
  if (prompts.empty()) return invalid(path.string() + " holds no prompt");
  return prompts;
}

std::vector<model::Message> replay_messages(const Prompt& prompt, const std::string& code,
                                            const std::string& feedback) {
  MC_CHECK(!prompt.messages.empty());
  std::vector<model::Message> messages = prompt.messages;
  messages.back().content += reward::retry_request(code, feedback);
  return messages;
}

void add_repair_turn(const Turn& failed, std::vector<model::Message>& messages) {
  messages.push_back({"assistant", std::string(legality::visible_answer(failed.answer))});
  messages.push_back({"user", reward::repair_request(failed.judgement.feedback)});
}

std::vector<std::optional<double>> Episode::scores() const {
  std::vector<std::optional<double>> s;
  for (const Turn& turn : turns) s.push_back(turn.judgement.s);
  return s;
}

bool Episode::passed() const {
  return std::any_of(turns.begin(), turns.end(), [](const Turn& turn) {
    return turn.judgement.s && *turn.judgement.s >= rl::kScorePassed;
  });
}

std::vector<std::span<const Episode>> groups_of(std::span<const Episode> episodes) {
  std::vector<std::span<const Episode>> groups;
  for (size_t begin = 0; begin < episodes.size();) {
    size_t end = begin;
    while (end < episodes.size() && episodes[end].group == episodes[begin].group) ++end;
    groups.push_back(episodes.subspan(begin, end - begin));
    begin = end;
  }
  return groups;
}

std::string json_line(const Episode& episode) {
  Json json;
  json["step"] = episode.step;
  json["group"] = episode.group;
  json["sample"] = episode.sample;
  json["task"] = episode.task;
  json["replay"] = episode.is_replay;
  json["prompt"] = episode.prompt;
  json["tokens"] = episode.tokens;
  json["log_probs"] = episode.log_probs;
  json["turns"] = Json::array();
  for (const Turn& turn : episode.turns) json["turns"].push_back(json_of(turn));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Episode> episode_from_json(const std::string& line) {
  Episode episode;
  try {
    const Json json = Json::parse(line);
    json.at("step").get_to(episode.step);
    json.at("group").get_to(episode.group);
    json.at("sample").get_to(episode.sample);
    json.at("task").get_to(episode.task);
    json.at("replay").get_to(episode.is_replay);
    json.at("prompt").get_to(episode.prompt);
    json.at("tokens").get_to(episode.tokens);
    json.at("log_probs").get_to(episode.log_probs);
    for (const Json& turn : json.at("turns")) episode.turns.push_back(turn_of(turn));
  } catch (const Json::exception& failure) {
    return invalid(std::string("is no episode: ") + failure.what());
  }
  if (episode.prompt.empty() || episode.turns.empty() ||
      episode.tokens.size() != episode.log_probs.size()) {
    return invalid("is no episode: no prompt, no turn, or not as many log_probs as tokens");
  }
  return episode;
}

std::string json_lines(std::span<const Episode> episodes) {
  std::string lines;
  for (const Episode& episode : episodes) lines += json_line(episode);
  return lines;
}

Result<std::vector<Episode>> episodes_from_lines(const std::string& text) {
  std::istringstream stream(text);
  std::vector<Episode> episodes;
  for (std::string line; std::getline(stream, line);) {
    MC_TRY(Episode episode, episode_from_json(line), fmt::format("line {}", episodes.size() + 1));
    episodes.push_back(std::move(episode));
  }
  return episodes;
}

}  // namespace mc::loop
