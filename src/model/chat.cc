// SPDX-License-Identifier: Apache-2.0
#include "model/chat.h"

namespace mc::model {

std::string render_prompt(std::span<const Message> messages) {
  std::string text;
  for (const Message& message : messages) {
    text.append(kTurnStart).append(message.role).append("\n");
    text.append(message.content).append(kTurnEnd).append("\n");
  }
  return text.append(kTurnStart).append("assistant\n");
}

const std::string_view kChatTemplate =
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

}  // namespace mc::model
