// SPDX-License-Identifier: Apache-2.0
#include "sample/chat_client.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/utf8.h"
#include "task/text.h"

namespace mc::sample {
namespace {

using Json = nlohmann::json;

constexpr double kPauseMax = 60;  // In seconds.
constexpr int64_t kCountMax = 1'000'000'000;
constexpr std::string_view kRoute = "/chat/completions";

std::string url_of(std::string endpoint) {
  while (endpoint.ends_with('/')) endpoint.pop_back();
  if (!endpoint.ends_with(kRoute)) endpoint += kRoute;
  return endpoint;
}

std::string body_of(const Messages& messages, const Sampling& sampling, const Endpoint& endpoint) {
  MC_CHECK(!messages.empty());
  Json list = Json::array();
  for (const Message& message : messages) {
    list.push_back({{"role", message.role}, {"content", message.content}});
  }
  Json body = {{"model", endpoint.model},
               {"messages", std::move(list)},
               {"temperature", sampling.temperature},
               {"top_p", sampling.top_p},
               {"max_tokens", sampling.tokens_max}};
  if (sampling.seed) body["seed"] = *sampling.seed;
  const Json extra = Json::parse(endpoint.extra_body, nullptr, false);
  if (extra.is_object()) body.update(extra);
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool may_pass(long status) { return status == 408 || status == 429 || status >= 500; }

bool may_pass(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kTimeout;
}

// The error message of the server: OpenAI's {"error": {"message"}}, others' {"detail"}, else the
// beginning of the response.
std::string message_of(const HttpResponse& response) {
  const Json json = Json::parse(response.body, nullptr, false);
  Json told;
  if (json.is_object()) {
    told = json.value("error", json.value("detail", json.value("message", Json())));
    if (told.is_object()) told = told.value("message", Json());
  }
  return task::plain_line(told.is_string() ? told.get<std::string>() : response.body, 200);
}

Error refusal(const std::string& url, const HttpResponse& response) {
  const std::string what =
      fmt::format("{} answers {}: {}", url, response.status, message_of(response));
  // These statuses may concern this request alone: a server may fail at one prompt in each attempt
  // and answer all others.
  const bool is_this_one = may_pass(response.status) || response.status == 400 ||
                           response.status == 413 || response.status == 422;
  if (is_this_one) return {ErrorCode::kInvalidInput, what};
  const bool is_key = response.status == 401 || response.status == 403;
  return {ErrorCode::kNotFound, what + (is_key ? " (the key is that of $OPENAI_API_KEY)" : "")};
}

Error not_an_endpoint(const std::string& url, const HttpResponse& response) {
  const std::string type = task::plain_line(response.content_type, 100);
  return {ErrorCode::kNotFound,
          fmt::format("{} answers {}, which is no chat completion: is it the address of an "
                      "OpenAI-compatible server? It usually ends in /v1",
                      url, type.empty() ? "text" : type)};
}

// A member that is a text, or a list of parts with texts; "" if it is null or missing.
std::string text_of(const Json& message, const char* name) {
  const Json& content = message.contains(name) ? message[name] : Json();
  if (content.is_null()) return "";
  if (!content.is_array()) return content.get<std::string>();
  std::string text;
  for (const Json& part : content) text += part.value("text", "");
  return text;
}

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n") == std::string::npos;
}

// Reads the content and the reasoning.  Servers return the reasoning in a separate member, whose
// name differs.  If there is no content, the answer is at the end of the reasoning, or was cut off
// there.
void take_texts(const Json& message, Completion& out) {
  out.text = text_of(message, "content");
  for (const char* name : {"reasoning_content", "reasoning"}) {
    if (is_blank(out.reasoning)) out.reasoning = text_of(message, name);
  }
  if (is_blank(out.text)) out.text = std::exchange(out.reasoning, "");
  if (is_blank(out.text)) out.text.clear();
}

// A count in `usage`; 0 if the server does not report it.
int64_t count_of(const Json& usage, const char* name) {
  if (!usage.is_object()) return 0;
  const Json count = usage.value(name, Json());
  return count.is_number_unsigned() && count <= kCountMax ? count.get<int64_t>() : 0;
}

Result<Completion> completion_of(const std::string& url, const HttpResponse& response) {
  const Json json = Json::parse(without_lone_surrogates(response.body), nullptr, false);
  try {
    const Json& choice = json.at("choices").at(0);
    const Json& message = choice.at("message");
    if (!message.is_object()) return not_an_endpoint(url, response);
    Completion out;
    take_texts(message, out);
    const Json finish = choice.value("finish_reason", Json());
    if (finish.is_string()) out.finish = finish;
    const Json usage = json.value("usage", Json());
    out.num_tokens = count_of(usage, "completion_tokens");
    out.prompt_tokens = count_of(usage, "prompt_tokens");
    if (usage.is_object()) {
      const Json details = usage.value("completion_tokens_details", Json());
      out.reasoning_tokens = count_of(details, "reasoning_tokens");
    }
    return out;
  } catch (const Json::exception&) {
    return not_an_endpoint(url, response);
  }
}

}  // namespace

ChatClient::ChatClient(const HttpPost& http, Endpoint endpoint, Sleep sleep)
    : http_(http),
      endpoint_(std::move(endpoint)),
      url_(url_of(endpoint_.endpoint)),
      sleep_(std::move(sleep)) {
  MC_CHECK(sleep_ && endpoint_.retries >= 0);
}

struct ChatClient::Attempt {
  Result<Completion> result;
  bool may_pass = false;  // True if another attempt may succeed.
  double retry_after_s = 0;
};

ChatClient::Attempt ChatClient::try_once(const std::string& body) const {
  const Result<HttpResponse> response = http_.post_json({.url = url_,
                                                         .body = body,
                                                         .bearer = endpoint_.api_key,
                                                         .headers = endpoint_.headers,
                                                         .timeout_s = endpoint_.timeout_s});
  if (!response && response.error().code == ErrorCode::kNotFound) {
    return {Error{ErrorCode::kUnavailable, response.error().message}, has_answered_};
  }
  if (!response) return {response.error(), may_pass(response.error())};
  has_answered_ = true;
  if (response->status != 200) {
    return {refusal(url_, *response), may_pass(response->status), response->retry_after_s};
  }
  Result<Completion> completion = completion_of(url_, *response);
  const bool is_whole = completion && (!completion->text.empty() || completion->finish == "length");
  return {std::move(completion), !is_whole};
}

Result<Completion> ChatClient::complete(const Messages& messages, const Sampling& sampling) const {
  const std::string body = body_of(messages, sampling, endpoint_);
  for (int tried = 0;; ++tried) {
    Attempt attempt = try_once(body);
    if (!attempt.may_pass || tried >= endpoint_.retries) return std::move(attempt.result);
    sleep_(std::min(kPauseMax, std::max(attempt.retry_after_s, std::ldexp(1.0, tried))));
  }
}

}  // namespace mc::sample
