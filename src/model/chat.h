// SPDX-License-Identifier: Apache-2.0
//
// Conversations as text.  A model has its own chat template, or ChatML: each message as
// <|im_start|>role, a line break, its content, <|im_end|> and a line break, without a system
// message that is made up.
//
//   MC_TRY(const std::string text, chat.render(messages, ChatEnd::kPrompt), "a prompt");
#ifndef MC_MODEL_CHAT_H_
#define MC_MODEL_CHAT_H_

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"

namespace mc::model {

inline constexpr std::string_view kTurnStart = "<|im_start|>";
inline constexpr std::string_view kTurnEnd = "<|im_end|>";

struct Message {
  std::string role;
  std::string content;
};

enum class ChatEnd {
  kWhole,   // After the last message.
  kPrompt,  // After the beginning of the assistant's answer to it.
};

// In ChatML.
std::string render_chatml(std::span<const Message> messages, ChatEnd end);

// The same in the language of chat templates (tokenizer_config.json), for other programs.
extern const std::string_view kChatTemplate;

class ChatTemplate;

// How a model writes conversations.  Thread-safe after construction.
class Chat {
 public:
  Chat() = default;  // ChatML.
  explicit Chat(std::shared_ptr<ChatTemplate> own) : own_(std::move(own)) {}
  // A model without one: every rendering is this error.
  explicit Chat(Error missing) : missing_(std::move(missing)) {}

  Result<std::string> render(std::span<const Message> messages, ChatEnd end) const;

 private:
  std::shared_ptr<ChatTemplate> own_;  // Shared by copies of this value.
  std::optional<Error> missing_;
};

}  // namespace mc::model

#endif  // MC_MODEL_CHAT_H_
