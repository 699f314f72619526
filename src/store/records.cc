// SPDX-License-Identifier: Apache-2.0
#include "store/records.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "task/task.h"
#include "task/verdict_json.h"

namespace mc::store {
namespace {

using Json = nlohmann::json;

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

Result<std::string> text_of(const Json& json, const char* name, const char* other_name) {
  auto found = json.find(name);
  if (found == json.end()) found = json.find(other_name);
  if (found == json.end() || !found->is_string()) {
    return invalid(fmt::format("\"{}\" or \"{}\" is missing", name, other_name));
  }
  return found->get<std::string>();
}

// The text of an optional member; "" if it is missing.
std::string text_or_empty(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

Result<int64_t> count_of(const Json& json, const char* name) {
  constexpr uint64_t kCountMax = 1'000'000'000;
  const auto found = json.find(name);
  if (found == json.end()) return int64_t{0};
  if (!found->is_number_unsigned() || found->get<uint64_t>() > kCountMax) {
    return invalid(fmt::format("\"{}\" is not a number from 0 to 10^9", name));
  }
  return found->get<int64_t>();
}

}  // namespace

std::string to_string(const AnswerKey& key) {
  const std::string name = fmt::format("{}#{}", key.id, key.sample);
  return key.turn == 0 ? name : fmt::format("{}.{}", name, key.turn);
}

std::string json_line(const Answer& answer) {
  Json json = {{"id", answer.key.id},
               {"sample", answer.key.sample},
               {"completion", answer.completion},
               {"num_tokens", answer.num_tokens},
               {"finish", answer.finish}};
  if (answer.key.turn > 0) json["turn"] = answer.key.turn;
  if (!answer.reasoning.empty()) json["reasoning"] = answer.reasoning;
  if (answer.reasoning_tokens > 0) json["reasoning_tokens"] = answer.reasoning_tokens;
  if (answer.prompt_tokens > 0) json["prompt_tokens"] = answer.prompt_tokens;
  if (answer.seconds > 0) json["seconds"] = answer.seconds;
  return line_of(json);
}

Result<Answer> answer_from_json(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return invalid("not a JSON object");
  Answer out;
  MC_TRY(out.key.id, text_of(json, "id", "task"), "answer");
  if (!json.contains("sample")) return invalid("\"sample\" is missing");
  MC_TRY(out.key.sample, count_of(json, "sample"), "answer");
  MC_TRY(out.key.turn, count_of(json, "turn"), "answer");
  MC_TRY(out.completion, text_of(json, "completion", "response"), "answer");
  if (out.completion.size() > task::kAnswerBytesMax) return invalid("the answer is above 16 MiB");
  MC_TRY(out.num_tokens, count_of(json, "num_tokens"), "answer");
  MC_TRY(out.reasoning_tokens, count_of(json, "reasoning_tokens"), "answer");
  MC_TRY(out.prompt_tokens, count_of(json, "prompt_tokens"), "answer");
  out.finish = text_or_empty(json, "finish");
  out.reasoning = text_or_empty(json, "reasoning");
  const auto seconds = json.find("seconds");
  if (seconds != json.end() && seconds->is_number()) out.seconds = *seconds;
  return out;
}

std::string json_line(const Judgement& judgement) {
  const Json head = {{"id", judgement.key.id},
                     {"sample", judgement.key.sample},
                     {"turn", judgement.key.turn},
                     {"reward", judgement.reward ? Json(*judgement.reward) : Json()},
                     {"seconds", judgement.seconds},
                     {"feedback", judgement.feedback}};
  std::string line = line_of(head);
  // The verdict is appended as text, because its members must keep their order.
  line.erase(line.size() - 2);
  return line + ",\"verdict\":" + task::to_json(judgement.verdict, task::Indent::kCompact) + "}\n";
}

}  // namespace mc::store
