// SPDX-License-Identifier: Apache-2.0
#include "bench/sampler.h"

#include <deque>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace mc::bench {
namespace {

using Json = nlohmann::json;

const std::string kGood =
    R"({"choices": [{"message": {"content": "hello", "reasoning": "so"},
        "finish_reason": "length"}], "usage": {"prompt_tokens": 5, "completion_tokens": 9,
        "completion_tokens_details": {"reasoning_tokens": 4}}})";

// A server that returns the given responses in order.
class FakeServer final : public sample::HttpPost {
 public:
  explicit FakeServer(std::deque<Result<sample::HttpResponse>> answers)
      : answers_(std::move(answers)) {}
  Result<sample::HttpResponse> post_json(const sample::HttpRequest& request) const override {
    bodies.push_back(Json::parse(request.body));
    Result<sample::HttpResponse> answer = answers_.front();
    answers_.pop_front();
    return answer;
  }
  mutable std::vector<Json> bodies;

 private:
  mutable std::deque<Result<sample::HttpResponse>> answers_;
};

Result<sample::HttpResponse> good() {
  return sample::HttpResponse{200, "application/json", kGood, 0};
}
Result<sample::HttpResponse> status(long code) {
  return sample::HttpResponse{code, "text/plain", "no", 0};
}
Result<sample::HttpResponse> no_connection() {
  return Error{ErrorCode::kUnavailable, "no connection"};
}

// The result of each request as a letter: "a" for an answer, "f" for a request without an answer,
// "e" for an error of the whole call.
std::string asked(std::deque<Result<sample::HttpResponse>> answers) {
  const size_t num = answers.size();
  const FakeServer server(std::move(answers));
  const sample::ChatClient client(
      server, {.endpoint = "http://h/v1", .model = "m", .api_key = "", .retries = 0},
      [](double) {});
  EndpointSampler sampler(client, {}, 0);
  std::string out;
  for (size_t i = 0; i < num; ++i) {
    const Request request{{"a", static_cast<int64_t>(i), 0}, {{"user", "hi"}}};
    const auto answer = sampler.ask({&request, 1});
    out += !answer ? 'e' : answer->front() ? 'a' : 'f';
  }
  return out;
}

TEST(EndpointSampler, KeepsAllValuesThatTheServerReports) {
  const FakeServer server({good()});
  const sample::ChatClient client(server, {.endpoint = "http://h/v1", .model = "m", .api_key = ""},
                                  [](double) {});
  EndpointSampler sampler(client, {}, 0);
  const Request request{{"a", 3, 2}, {{"system", "be brief"}, {"user", "hi"}}};
  const auto answers = sampler.ask({&request, 1});
  ASSERT_TRUE(answers && answers->front());
  store::Answer answer = *answers->front();
  EXPECT_GE(answer.seconds, 0);
  answer.seconds = 0;
  EXPECT_EQ(answer, (store::Answer{.key = {"a", 3, 2},
                                   .completion = "hello",
                                   .reasoning = "so",
                                   .finish = "length",
                                   .num_tokens = 9,
                                   .reasoning_tokens = 4,
                                   .prompt_tokens = 5}));
  EXPECT_EQ(server.bodies.at(0)["messages"],
            Json::parse(R"([{"role": "system", "content": "be brief"},
                            {"role": "user", "content": "hi"}])"));
}

TEST(EndpointSampler, HasASeedForEachSampleAndTurn) {
  std::set<uint64_t> seeds;
  for (const uint64_t base : {0, 1}) {
    const FakeServer server({good(), good(), good(), good()});
    const sample::ChatClient client(
        server, {.endpoint = "http://h/v1", .model = "m", .api_key = ""}, [](double) {});
    EndpointSampler sampler(client, {}, base);
    for (const int64_t sample : {0, 10}) {
      for (const int64_t turn : {0, 1}) {
        const Request request{{"a", sample, turn}, {{"user", "hi"}}};
        ASSERT_TRUE(sampler.ask({&request, 1}));
      }
    }
    for (const Json& body : server.bodies) seeds.insert(body["seed"].get<uint64_t>());
  }
  EXPECT_EQ(seeds.size(), 8U);
}

TEST(EndpointSampler, EndsTheRunOnlyIfNoRequestWouldBeAnswered) {
  const struct {
    std::deque<Result<sample::HttpResponse>> answers;
    std::string letters;
  } kTable[] = {
      {{status(404)}, "e"},                                       // The model does not exist.
      {{status(401)}, "e"},                                       // The key is rejected.
      {{good(), status(404), status(401)}, "aff"},                // The server answered before.
      {{status(400), status(500), status(429), good()}, "fffa"},  // Only this request fails.
      {{no_connection()}, "e"},                                   // The server has never answered.
      {{good(), no_connection(), no_connection(), no_connection(), no_connection()}, "afffe"},
      {{good(), no_connection(), no_connection(), no_connection(), good(), no_connection()},
       "afffaf"},
      {{Error{ErrorCode::kTimeout, "slow"}, Error{ErrorCode::kTimeout, "slow"},
        Error{ErrorCode::kTimeout, "slow"}, Error{ErrorCode::kTimeout, "slow"}},
       "ffff"},
  };
  for (const auto& row : kTable) EXPECT_EQ(asked(row.answers), row.letters);
}

}  // namespace
}  // namespace mc::bench
