// SPDX-License-Identifier: Apache-2.0
//
// Conversations as text, in the model's own chat template or in ChatML.  In ChatML each message is
// <|im_start|>role, a line break, its content, <|im_end|> and a line break; no system message is
// added.
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
  kWhole,   // The text ends after the last message.
  kPrompt,  // The text ends where the assistant's next answer begins.
};

// The conversation in ChatML.
std::string render_chatml(std::span<const Message> messages, ChatEnd end);

// The ChatML template in the language of chat templates (tokenizer_config.json), for other
// programs.
extern const std::string_view kChatTemplate;

class ChatTemplate;

// The chat format of a model.  Thread-safe after construction.
class Chat {
 public:
  Chat() = default;  // The default is ChatML.
  explicit Chat(std::shared_ptr<ChatTemplate> own) : own_(std::move(own)) {}
  // A model without a chat format: every rendering fails with this error.
  explicit Chat(Error missing) : missing_(std::move(missing)) {}

  Result<std::string> render(std::span<const Message> messages, ChatEnd end) const;

 private:
  std::shared_ptr<ChatTemplate> own_;  // Shared by copies of this value.
  std::optional<Error> missing_;
};

}  // namespace mc::model

#endif  // MC_MODEL_CHAT_H_
