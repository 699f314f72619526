// SPDX-License-Identifier: Apache-2.0
//
// ChatClient: asks a model behind an OpenAI-compatible endpoint (POST …/chat/completions).
//
// A request that may pass later is tried again, after 1, 2, 4, … s or when the server says: no
// connection to a server that answered before, a time-out, 408, 429, 5xx, a response that is no
// chat completion (a proxy's page, say) or one without a text.  One that will not pass is an error
// at once, in one line that says what to do: a key that is refused, a model that is not there.
// Example:
//   const ChatClient client(http, {.endpoint = "http://localhost:8000/v1", .model = "m"}, sleep);
//   MC_TRY(Completion completion, client.complete(messages, {}), "ask the model");
#ifndef MC_SAMPLE_CHAT_CLIENT_H_
#define MC_SAMPLE_CHAT_CLIENT_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "sample/http.h"
#include "sample/suite.h"

namespace mc::sample {

struct Endpoint {
  std::string endpoint;  // ".../v1", or the whole URL up to "/chat/completions".
  std::string model;
  std::string api_key;  // "": none is sent.
  double timeout_s = 600;
  int retries = 4;
  std::vector<std::string> headers{};  // "Name: value", besides those that every request has.
  std::string extra_body = "{}";       // A JSON object, whose members go into each request.
};

struct Sampling {
  double temperature = 0;
  double top_p = 1;
  int64_t tokens_max = 4096;
  std::optional<uint64_t> seed;  // Servers may ignore it.
};

struct Completion {
  std::string text;       // The content; of a reasoning model without any, its reasoning.
  std::string reasoning;  // The reasoning beside a content, or "".
  std::string finish;     // "stop", "length", or what the server says.
  // Each count is 0 where the server does not report it.
  int64_t num_tokens = 0;        // The tokens of the completion, the reasoning's among them.
  int64_t reasoning_tokens = 0;  // The reasoning's.
  int64_t prompt_tokens = 0;
};

class ChatClient {
 public:
  using Sleep = std::function<void(double seconds)>;
  // `http` must outlive the client.
  ChatClient(const HttpPost& http, Endpoint endpoint, Sleep sleep);

  // Thread-safe where `sleep` is.
  // kInvalidInput: the server refuses this request (a prompt that is too long, say), or fails at it
  // however often it is tried; others may do.
  // kNotFound: this is no such endpoint, key or model, and no request will do.  A server that has
  // answered before may still return a page of a proxy's in the place of one answer.
  // kUnavailable, kTimeout: no response came, however often it was tried.  Where no connection can
  // be made to a server that has never answered, it is tried once.
  Result<Completion> complete(const Messages& messages, const Sampling& sampling) const;

 private:
  struct Attempt;
  Attempt try_once(const std::string& body) const;

  const HttpPost& http_;
  const Endpoint endpoint_;
  const std::string url_;
  const Sleep sleep_;
  mutable std::atomic<bool> has_answered_ = false;
};

}  // namespace mc::sample

#endif  // MC_SAMPLE_CHAT_CLIENT_H_
