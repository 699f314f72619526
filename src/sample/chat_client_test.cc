// SPDX-License-Identifier: Apache-2.0
#include "sample/chat_client.h"

#include <deque>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace mc::sample {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::json;

const std::string kGood =
    R"({"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}],
        "usage": {"completion_tokens": 7}})";

// A server that returns the given responses in order, and the last one for all further requests.
class FakeServer final : public HttpPost {
 public:
  explicit FakeServer(std::deque<Result<HttpResponse>> answers) : answers_(std::move(answers)) {}
  Result<HttpResponse> post_json(const HttpRequest& request) const override {
    requests.push_back(request);
    const Result<HttpResponse> answer = answers_.front();
    if (answers_.size() > 1) answers_.pop_front();
    return answer;
  }
  mutable std::vector<HttpRequest> requests;

 private:
  mutable std::deque<Result<HttpResponse>> answers_;
};

HttpResponse response(long status, const std::string& body, double retry_after_s = 0) {
  return {status, status == 200 ? "application/json" : "text/plain", body, retry_after_s};
}

struct Client {
  explicit Client(std::deque<Result<HttpResponse>> answers) : server(std::move(answers)) {}
  Result<Completion> ask(const Sampling& sampling = {}) {
    const ChatClient client(server, {.endpoint = "http://h/v1/", .model = "m", .api_key = "k"},
                            [this](double seconds) { pauses.push_back(seconds); });
    return client.complete({{"user", "hi"}}, sampling);
  }
  FakeServer server;
  std::vector<double> pauses;
};

TEST(ChatClient, SendsRequestsInOpenAisFormat) {
  Client client({response(200, kGood)});
  const auto completion =
      client.ask({.temperature = 0.5, .top_p = 0.9, .tokens_max = 8, .seed = 3});
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->text, "hello");
  EXPECT_EQ(completion->finish, "stop");
  EXPECT_EQ(completion->num_tokens, 7);
  const HttpRequest& request = client.server.requests.at(0);
  EXPECT_EQ(request.url, "http://h/v1/chat/completions");
  EXPECT_EQ(request.bearer, "k");
  EXPECT_EQ(Json::parse(request.body),
            Json::parse(R"({"model": "m", "messages": [{"role": "user", "content": "hi"}],
                            "temperature": 0.5, "top_p": 0.9, "max_tokens": 8, "seed": 3})"));
}

TEST(ChatClient, RetriesTemporaryFailures) {
  Client client({Error{ErrorCode::kUnavailable, "refused"}, response(503, "busy"),
                 response(429, "slow down", 30), response(200, kGood)});
  ASSERT_TRUE(client.ask());
  EXPECT_THAT(client.pauses, ElementsAre(1, 2, 30));
}

TEST(ChatClient, ReportsAFinalFailureInOneLine) {
  Client down({Error{ErrorCode::kUnavailable, "no answer from u: refused"}});
  const auto completion = down.ask();
  ASSERT_FALSE(completion);
  EXPECT_EQ(completion.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(down.pauses, ElementsAre(1, 2, 4, 8));
  Client busy({response(500, R"({"error": {"message": "no\nmemory"}})")});
  EXPECT_THAT(busy.ask().error().message, HasSubstr("answers 500: no memory"));
  EXPECT_EQ(busy.ask().error().code, ErrorCode::kInvalidInput) << "another prompt may do";
}

TEST(ChatClient, RetriesConnectionsOnlyToAServerThatAnsweredBefore) {
  const Error nothing{ErrorCode::kNotFound, "no answer from u: is the server running there?"};
  Client wrong({nothing});
  const auto completion = wrong.ask();
  ASSERT_FALSE(completion);
  EXPECT_EQ(completion.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(wrong.pauses, ElementsAre());
  Client restarted({response(503, "starting"), nothing, nothing, response(200, kGood)});
  EXPECT_TRUE(restarted.ask());
  EXPECT_THAT(restarted.pauses, ElementsAre(1, 2, 4));
}

TEST(ChatClient, DoesNotRetryPermanentFailures) {
  const struct {
    HttpResponse response;
    ErrorCode code;
    std::string words;
  } kTable[] = {
      {response(401, "no"), ErrorCode::kNotFound, "OPENAI_API_KEY"},
      {response(404, R"({"error": {"message": "no model m"}})"), ErrorCode::kNotFound,
       "404: no model m"},
      {response(400, R"({"detail": "too long"})"), ErrorCode::kInvalidInput, "400: too long"},
  };
  for (const auto& row : kTable) {
    Client client({row.response});
    const auto completion = client.ask();
    ASSERT_FALSE(completion) << row.words;
    EXPECT_EQ(completion.error().code, row.code) << row.words;
    EXPECT_THAT(completion.error().message, HasSubstr(row.words));
    EXPECT_TRUE(client.pauses.empty());
  }
}

TEST(ChatClient, RetriesAfterAResponseThatIsNotACompletion) {
  const HttpResponse kTable[] = {{200, "text/html; charset=utf-8", "<html>", 0},
                                 response(200, "null"),
                                 response(200, R"({"choices": []})"),
                                 response(200, "[1]"),
                                 response(200, R"({"choices": [{"message": {"content": 3}}]})"),
                                 response(200, R"({"choices": [{"message": {"content": null}}]})")};
  for (const HttpResponse& bad : kTable) {
    Client once({bad, response(200, kGood)});
    EXPECT_EQ(once.ask()->text, "hello");
    EXPECT_THAT(once.pauses, ElementsAre(1));
  }
  Client html({kTable[0]});
  const auto completion = html.ask();
  ASSERT_FALSE(completion);
  EXPECT_EQ(completion.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(completion.error().message,
              HasSubstr("text/html; charset=utf-8, which is no chat completion"));
}

TEST(ChatClient, SendsAdditionalMembersAndHeaders) {
  FakeServer server({response(200, kGood)});
  const ChatClient client(server,
                          {.endpoint = "http://h/v1",
                           .model = "m",
                           .api_key = "",
                           .headers = {"X-Team: kernels"},
                           .extra_body = R"({"top_k": 20, "temperature": 0.25})"},
                          [](double) {});
  ASSERT_TRUE(client.complete({{"user", "hi"}}, {}));
  const Json body = Json::parse(server.requests.at(0).body);
  EXPECT_EQ(body["top_k"], 20);
  EXPECT_EQ(body["temperature"], 0.25);
  EXPECT_THAT(server.requests.at(0).headers, ElementsAre("X-Team: kernels"));
}

TEST(ChatClient, KeepsTheReasoningAndTheCounts) {
  Client client({response(200, R"({"choices": [{"message": {"content": "x", "reasoning": "so"},
      "finish_reason": "stop"}], "usage": {"prompt_tokens": 5, "completion_tokens": 9,
      "completion_tokens_details": {"reasoning_tokens": 4}}})")});
  const auto completion = client.ask();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->text, "x");
  EXPECT_EQ(completion->reasoning, "so");
  EXPECT_EQ(completion->prompt_tokens, 5);
  EXPECT_EQ(completion->num_tokens, 9);
  EXPECT_EQ(completion->reasoning_tokens, 4);
}

TEST(ChatClient, IgnoresInvalidCounts) {
  for (const char* count : {"-5", "1e300", "99999999999999999999", "\"9\"", "null", "0.5"}) {
    Client client(
        {response(200, std::string(R"({"choices": [{"message": {"content": "x"}}], "usage": {)") +
                           R"("completion_tokens": )" + count + "}}")});
    const auto completion = client.ask();
    ASSERT_TRUE(completion) << count;
    EXPECT_EQ(completion->num_tokens, 0) << count;
  }
}

TEST(ChatClient, RemovesControlCharactersOfAServersMessage) {
  Client client({HttpResponse{200, "text/\x1b[2J\x1b]0;x\x07html", "<html>", 0}});
  const auto completion = client.ask();
  ASSERT_FALSE(completion);
  EXPECT_EQ(completion.error().message.find('\x1b'), std::string::npos);
}

TEST(ChatClient, ReadsMissingContentAsAnEmptyAnswer) {
  Client client({response(
      200, R"({"choices": [{"message": {"content": null}, "finish_reason": "length"}]})")});
  const auto completion = client.ask();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->text, "");
  EXPECT_EQ(completion->finish, "length");
}

TEST(ChatClient, ReadsTheAnswerOfAReasoningModel) {
  const std::pair<std::string, std::string> kTable[] = {
      {R"({"content": null, "reasoning_content": "so: x"})", "so: x"},
      {R"({"content": "\n", "reasoning": "so: x"})", "so: x"},
      {R"({"reasoning_content": "so: x"})", "so: x"},
      {R"({"content": "x", "reasoning_content": "so"})", "x"},
      {R"({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})", "ab"},
      {R"({"content": "half \ud83d a pair"})", "half \xef\xbf\xbd a pair"},
      {R"({"content": null, "reasoning_content": null})", ""},
  };
  for (const auto& [message, text] : kTable) {
    Client client({response(200, R"({"choices": [{"message": )" + message +
                                     R"(}], "usage": {"completion_tokens": null}})")});
    const auto completion = client.ask();
    ASSERT_TRUE(completion) << message << ": " << completion.error().message;
    EXPECT_EQ(completion->text, text);
  }
}

TEST(HttpClient, ReportsAPortWithoutAServerInOneLine) {
  const auto http = HttpClient::create();
  if (!http) GTEST_SKIP() << http.error().message;
  const auto found = http->post_json({.url = "http://127.0.0.1:1/v1", .body = "{}"});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(found.error().message, HasSubstr("no answer from http://127.0.0.1:1/v1"));
  EXPECT_EQ(http->post_json({.url = "file:///etc/passwd"}).error().code, ErrorCode::kInvalidInput);
}

}  // namespace
}  // namespace mc::sample
