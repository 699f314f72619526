// SPDX-License-Identifier: Apache-2.0
//
// A model's own chat template (Jinja), rendered by harness/chat/render.py in a child process.
//
//   MC_TRY(const auto chat, ChatTemplate::start(source, {{"bos_token", "<s>"}}), "load the model");
//   MC_TRY(const std::string text, chat->render(messages, ChatEnd::kPrompt), "a prompt");
//
// The child is the Python of $MC_PYTHON, else python3; it needs Jinja2, which PyTorch brings.
#ifndef MC_MODEL_CHAT_TEMPLATE_H_
#define MC_MODEL_CHAT_TEMPLATE_H_

#include <sys/types.h>

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "core/fd.h"
#include "core/result.h"
#include "model/chat.h"

namespace mc::model {

class ChatTemplate {
 public:
  // Variables are the special tokens that a template may name.  kInvalidInput where the template
  // does not compile, kUnavailable where Python or Jinja2 is missing.
  static Result<std::unique_ptr<ChatTemplate>> start(
      const std::string& source, const std::map<std::string, std::string>& variables);
  // Ends the child.
  ~ChatTemplate();

  // Thread-safe.  kInvalidInput where the template refuses the messages.
  Result<std::string> render(std::span<const Message> messages, ChatEnd end);

 private:
  ChatTemplate(Fd channel, pid_t child) : channel_(std::move(channel)), child_(child) {}
  Result<std::string> exchange(const std::string& line);

  const Fd channel_;  // Constant after construction, like the next one.
  const pid_t child_;
  std::mutex mutex_;    // Held from a request to its reply.
  std::string unread_;  // Bytes after the last reply; guarded by mutex_.
};

}  // namespace mc::model

#endif  // MC_MODEL_CHAT_TEMPLATE_H_
