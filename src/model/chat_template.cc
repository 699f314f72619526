// SPDX-License-Identifier: Apache-2.0
#include "model/chat_template.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/layout.h"

namespace mc::model {
namespace {

using Json = nlohmann::json;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<std::string> text_of(const std::string& line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (json.is_object() && json.contains("text") && json["text"].is_string()) {
    return json["text"].get<std::string>();
  }
  if (json.is_object() && json.contains("error") && json["error"].is_string()) {
    return invalid("the chat template: " + json["error"].get<std::string>());
  }
  return Error{ErrorCode::kProtocol, "the renderer of chat templates replied with no JSON"};
}

}  // namespace

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::start(
    const std::string& source, const std::map<std::string, std::string>& variables) {
  MC_TRY(const Layout layout, find_layout(), "the chat template");
  const char* python = std::getenv("MC_PYTHON");
  const std::vector<std::string> words = {python != nullptr ? python : "python3", "-P",
                                          layout.share("python/harness") / "chat/render.py"};
  MC_TRY(auto child, LineChild::start(words, LineChild::AtEnd::kTerminate), "the chat template");
  std::unique_ptr<ChatTemplate> made(new ChatTemplate(std::move(child)));
  MC_TRY_VOID(made->exchange(dump({{"template", source}, {"variables", variables}})), "");
  return made;
}

Result<std::string> ChatTemplate::render(std::span<const Message> messages, ChatEnd end) {
  Json request;
  request["messages"] = Json::array();
  for (const Message& message : messages) {
    request["messages"].push_back({{"role", message.role}, {"content", message.content}});
  }
  request["add_generation_prompt"] = end == ChatEnd::kPrompt;
  const std::lock_guard lock(mutex_);
  return exchange(dump(request));
}

Result<std::string> ChatTemplate::exchange(const std::string& line) {
  MC_TRY(const std::string reply, child_->call(line),
         "the chat template (does $MC_PYTHON have jinja2?)");
  return text_of(reply);
}

}  // namespace mc::model
