// SPDX-License-Identifier: Apache-2.0
#include "model/chat.h"

#include "model/chat_template.h"

namespace mc::model {

std::string render_chatml(std::span<const Message> messages, ChatEnd end) {
  std::string text;
  for (const Message& message : messages) {
    text.append(kTurnStart).append(message.role).append("\n");
    text.append(message.content).append(kTurnEnd).append("\n");
  }
  if (end == ChatEnd::kPrompt) text.append(kTurnStart).append("assistant\n");
  return text;
}

const std::string_view kChatTemplate =
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

Result<std::string> Chat::render(std::span<const Message> messages, ChatEnd end) const {
  if (missing_) return *missing_;
  if (own_ != nullptr) return own_->render(messages, end);
  return render_chatml(messages, end);
}

}  // namespace mc::model
