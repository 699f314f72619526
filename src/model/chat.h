// SPDX-License-Identifier: Apache-2.0
//
// Conversations as text in ChatML: each message as <|im_start|>role, a line break, its content,
// <|im_end|> and a line break.  No system message is made up where there is none.
#ifndef MC_MODEL_CHAT_H_
#define MC_MODEL_CHAT_H_

#include <span>
#include <string>
#include <string_view>

namespace mc::model {

inline constexpr std::string_view kTurnStart = "<|im_start|>";
inline constexpr std::string_view kTurnEnd = "<|im_end|>";

struct Message {
  std::string role;
  std::string content;
};

// The messages, and the beginning of the assistant's answer to them.
std::string render_prompt(std::span<const Message> messages);

// The same in the language of chat templates (tokenizer_config.json), for other programs.
extern const std::string_view kChatTemplate;

}  // namespace mc::model

#endif  // MC_MODEL_CHAT_H_
