// SPDX-License-Identifier: Apache-2.0
#include "train/samples.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/fd.h"
#include "model/chat.h"

namespace mc::train {
namespace {

using Json = nlohmann::json;

Result<std::vector<model::Message>> parse_messages(const std::string& line) {
  const Json row = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!row.is_object()) return invalid("not a JSON object");
  const Json list = row.value("messages", Json());
  if (!list.is_array() || list.empty())
    return invalid("\"messages\" is missing, or is no list, or is empty");
  std::vector<model::Message> messages;
  for (const Json& entry : list) {
    const Json role = entry.is_object() ? entry.value("role", Json()) : Json();
    const Json content = entry.is_object() ? entry.value("content", Json()) : Json();
    if (!role.is_string() || !content.is_string()) {
      return invalid("a message's \"role\" or \"content\" is missing, or is no text");
    }
    messages.push_back({role.get<std::string>(), content.get<std::string>()});
  }
  return messages;
}

bool ends_an_answer(const model::Config& config, int32_t token) {
  return std::find(config.ends.begin(), config.ends.end(), token) != config.ends.end();
}

// The prompt and the answer are encoded separately, so that the answer begins with the same token
// that a model would have to generate after this prompt.
Result<Sample> make_sample(const std::string& line, const model::Model& model) {
  auto parsed = parse_messages(line);
  if (!parsed) return parsed.error();
  std::vector<model::Message> messages = std::move(*parsed);
  if (messages.back().role != "assistant") {
    return invalid("the last message is not the assistant's: there is nothing to learn from it");
  }
  MC_TRY(const std::string whole, model.chat.render(messages, model::ChatEnd::kWhole), "");
  messages.pop_back();
  MC_TRY(const std::string prompt, model.chat.render(messages, model::ChatEnd::kPrompt), "");
  if (!whole.starts_with(prompt)) {
    return invalid(
        "the chat template writes the messages before an answer in another way than "
        "without one, so that the answer cannot be told from them");
  }
  Sample sample;
  sample.tokens = model.tokenizer.encode(prompt);
  if (sample.tokens.empty()) return invalid("the messages before the answer have no token");
  sample.answer = static_cast<int64_t>(sample.tokens.size());
  std::vector<int32_t> answer = model.tokenizer.encode(whole.substr(prompt.size()));
  // Tokens after the end token are removed, because a model never generates them.
  while (!answer.empty() && !ends_an_answer(model.config, answer.back())) answer.pop_back();
  if (answer.empty())
    return invalid("the answer has no end token: a trained model would never stop");
  sample.tokens.insert(sample.tokens.end(), answer.begin(), answer.end());
  return sample;
}

}  // namespace

Result<Samples> read_samples(const std::filesystem::path& path, const model::Model& model,
                             int64_t length_max) {
  std::ifstream stream(path);
  if (!stream) return system_error(ErrorCode::kNotFound, "cannot read " + path.string());
  Samples samples;
  std::string line;
  for (int64_t number = 1; std::getline(stream, line); ++number) {
    if (line.empty()) continue;
    MC_TRY(Sample sample, make_sample(line, model),
           path.string() + ": line " + std::to_string(number));
    if (static_cast<int64_t>(sample.tokens.size()) > length_max) {
      ++samples.too_long;
    } else {
      samples.kept.push_back(std::move(sample));
    }
  }
  if (samples.kept.empty()) {
    return invalid(path.string() + " holds no conversation of at most " +
                   std::to_string(length_max) + " tokens");
  }
  return samples;
}

}  // namespace mc::train
