// SPDX-License-Identifier: Apache-2.0
#include "model/chat_source.h"

#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "model/chat_template.h"

namespace mc::model {
namespace {

using Json = nlohmann::json;

Json json_of(const std::map<std::string, std::string>& files, const char* name) {
  const auto found = files.find(name);
  if (found == files.end()) return Json::object();
  Json json = Json::parse(found->second, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json : Json::object();
}

// The template's text; empty if there is none.
std::string source_of(const std::map<std::string, std::string>& files) {
  if (const auto own = files.find("chat_template.jinja"); own != files.end()) return own->second;
  const Json config = json_of(files, "tokenizer_config.json");
  const Json named = config.value("chat_template", Json());
  if (named.is_string()) return named.get<std::string>();
  for (const Json& entry : named.is_array() ? named : Json::array()) {
    if (!entry.is_object() || entry.value("name", Json()) != "default") continue;
    const Json source = entry.value("template", Json());
    if (source.is_string()) return source.get<std::string>();
  }
  return "";
}

// The special tokens of the tokenizer, each given as a text or as an object with "content".
std::map<std::string, std::string> variables_of(const std::map<std::string, std::string>& files) {
  std::map<std::string, std::string> variables;
  for (const char* name : {"special_tokens_map.json", "tokenizer_config.json"}) {
    const Json tokens = json_of(files, name);
    for (const auto& [key, value] : tokens.items()) {
      if (!key.ends_with("_token")) continue;
      const Json content = value.is_object() ? value.value("content", Json()) : value;
      if (content.is_string()) variables[key] = content.get<std::string>();
    }
  }
  return variables;
}

}  // namespace

Result<Chat> chat_of(const std::map<std::string, std::string>& files, const Tokenizer& tokenizer) {
  const std::string source = source_of(files);
  if (source.empty() || source == kChatTemplate) {
    if (tokenizer.id_of(kTurnStart) && tokenizer.id_of(kTurnEnd)) return Chat();
    return Chat(
        invalid("the model has no chat template, nor <|im_start|> and <|im_end|> in its "
                "tokenizer: no conversation can be written for it; take its instruct version"));
  }
  MC_TRY(auto own, ChatTemplate::start(source, variables_of(files)), "the chat template");
  return Chat(std::shared_ptr<ChatTemplate>(std::move(own)));
}

}  // namespace mc::model
