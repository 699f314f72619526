// SPDX-License-Identifier: Apache-2.0
//
// ChatClient: requests answers from a model behind an OpenAI-compatible endpoint (POST
// …/chat/completions).
//
// A temporary failure is retried after 1, 2, 4, … s, or after the time that the server names: no
// connection to a server that answered before, a time-out, status 408, 429 or 5xx, a response that
// is not a chat completion (for example a proxy's page) or has no text.  A permanent failure, such
// as a rejected key or an unknown model, is an error at once, whose single line tells what to do.
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
  std::string api_key;  // "" sends no key.
  double timeout_s = 600;
  int retries = 4;
  std::vector<std::string> headers{};  // Additional headers, each "Name: value".
  std::string extra_body = "{}";       // A JSON object whose members are added to each request.
};

struct Sampling {
  double temperature = 0;
  double top_p = 1;
  int64_t tokens_max = 4096;
  std::optional<uint64_t> seed;  // Servers may ignore it.
};

struct Completion {
  std::string text;       // The content.  If a reasoning model returned no content, its reasoning.
  std::string reasoning;  // The reasoning, if the model returned both; else "".
  std::string finish;     // "stop", "length", or another reason that the server reports.
  // Each count is 0 if the server does not report it.
  int64_t num_tokens = 0;        // The tokens of the completion, including the reasoning.
  int64_t reasoning_tokens = 0;  // The tokens of the reasoning.
  int64_t prompt_tokens = 0;
};

class ChatClient {
 public:
  using Sleep = std::function<void(double seconds)>;
  // `http` must outlive the client.
  ChatClient(const HttpPost& http, Endpoint endpoint, Sleep sleep);

  // Sends one request, with retries.  Thread-safe if `sleep` is. kInvalidInput: the server rejects
  // this request (for example a prompt that is too long), or fails at it in every attempt; other
  // requests may succeed. kNotFound: the endpoint, the key or the model does not exist, and no
  // request can succeed.  From a server that has answered before, it may also be a proxy's page
  // instead of one answer. kUnavailable, kTimeout: no attempt got a response.  If the server has
  // never answered and no connection can be made, there is one attempt only.
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
