// SPDX-License-Identifier: Apache-2.0
//
// A model's own chat template (Jinja), rendered by python/harness/chat/render.py in a child
// process.
//
//   MC_TRY(const auto chat, ChatTemplate::start(source, {{"bos_token", "<s>"}}), "load the model");
//   MC_TRY(const std::string text, chat->render(messages, ChatEnd::kPrompt), "a prompt");
//
// The child runs the Python of $MC_PYTHON, else python3; it needs Jinja2, which PyTorch installs.
#ifndef MC_MODEL_CHAT_TEMPLATE_H_
#define MC_MODEL_CHAT_TEMPLATE_H_

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "core/line_child.h"
#include "core/result.h"
#include "model/chat.h"

namespace mc::model {

class ChatTemplate {
 public:
  // Starts the child.  The variables are the special tokens that a template may use.  kInvalidInput
  // if the template does not compile, kUnavailable if Python or Jinja2 is missing.
  static Result<std::unique_ptr<ChatTemplate>> start(
      const std::string& source, const std::map<std::string, std::string>& variables);
  // Renders the messages.  Thread-safe.  kInvalidInput if the template rejects the messages.
  Result<std::string> render(std::span<const Message> messages, ChatEnd end);

 private:
  explicit ChatTemplate(std::unique_ptr<LineChild> child) : child_(std::move(child)) {}
  Result<std::string> exchange(const std::string& line);

  const std::unique_ptr<LineChild> child_;
  std::mutex mutex_;  // The mutex is held from a request to its reply.
};

}  // namespace mc::model

#endif  // MC_MODEL_CHAT_TEMPLATE_H_
