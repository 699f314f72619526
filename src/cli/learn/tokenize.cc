// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/learn/commands.h"
#include "model/chat.h"
#include "model/model_folder.h"

namespace mc::learn {
namespace {

using Json = nlohmann::json;

// The text of an input line: a JSON string, or the prompt for a list of messages.
Result<std::string> text_of(const std::string& line, const model::Chat& chat) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (json.is_string()) return json.get<std::string>();
  const Error wrong{ErrorCode::kInvalidInput, "neither a JSON string nor a list of messages"};
  if (!json.is_array()) return wrong;
  std::vector<model::Message> messages;
  for (const Json& entry : json) {
    if (!entry.is_object() || !entry.value("role", Json()).is_string() ||
        !entry.value("content", Json()).is_string()) {
      return wrong;
    }
    messages.push_back({entry["role"].get<std::string>(), entry["content"].get<std::string>()});
  }
  return chat.render(messages, model::ChatEnd::kPrompt);
}

struct Reader {
  model::Tokenizer tokenizer;
  model::Chat chat;
};

// Opens a tokenizer.json, with ChatML, or a model folder, with its own chat template.
Result<Reader> open_reader(const std::string& path) {
  std::error_code failure;
  if (!std::filesystem::is_directory(path, failure)) {
    MC_TRY(model::Tokenizer tokenizer, model::Tokenizer::load(path), "tokenize");
    return Reader{std::move(tokenizer), {}};
  }
  MC_TRY(model::Model model, model::load_model(path), "tokenize");
  return Reader{std::move(model.tokenizer), std::move(model.chat)};
}

Status tokenize(const std::string& path) {
  MC_TRY(const Reader reader, open_reader(path), "tokenize");
  const auto& [tokenizer, chat] = reader;
  std::string line;
  for (int64_t number = 1; std::getline(std::cin, line); ++number) {
    MC_TRY(const std::string text, text_of(line, chat), "line " + std::to_string(number));
    const std::vector<int32_t> ids = tokenizer.encode(text);
    std::cout << Json{{"ids", ids}, {"text", model::valid_utf8(tokenizer.decode(ids))}} << "\n";
  }
  return ok();
}

}  // namespace

void add_tokenize(CLI::App& app, int& exit_code) {
  auto path = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "tokenize", "Read strings or lists of messages (JSON, one a line), print their tokens");
  command->add_option("--tokenizer", *path, "A tokenizer.json, or a model folder")->required();
  command->callback([path, &exit_code] { exit_code = code_of(tokenize(*path)); });
}

}  // namespace mc::learn
