// SPDX-License-Identifier: Apache-2.0
#include "service/stream.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/cancel.h"

namespace mc::service {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

// The answer "hang" runs until it is cancelled; "bad" is rejected; all others pass.
class FakeVerifier final : public Verifier {
 public:
  Result<eval::Preparation> run(const Request& request) override {
    ++runs;
    const std::string& answer = request.candidate.answer;
    if (answer == "bad") return Error{ErrorCode::kInvalidInput, "the task is none"};
    while (answer == "hang" && !is_cancelled()) std::this_thread::yield();
    task::Verdict verdict;
    verdict.task = request.verb == Verb::kMeasure ? request.prepared : request.task.id;
    verdict.candidate = request.candidate.id;
    verdict.outcome = task::Passed{};
    return eval::Preparation(std::move(verdict));
  }
  std::atomic<int> runs = 0;
};

Json line(const std::string& id, const std::string& answer) {
  return {{"id", id}, {"task", {{"id", "t"}, {"code", "x"}}}, {"answer", answer}};
}

// The replies by id.
std::multimap<std::string, Json> replies_to(const std::vector<std::string>& lines,
                                            FakeVerifier& verifier, int jobs = 2) {
  std::string text;
  for (const std::string& one : lines) text += one + "\n";
  std::istringstream in(text);
  std::ostringstream out;
  serve_stream(in, out, verifier, {.jobs = jobs});
  std::multimap<std::string, Json> replies;
  std::istringstream written(out.str());
  for (std::string one; std::getline(written, one);) {
    const Json json = Json::parse(one);
    replies.emplace(json["id"].get<std::string>(), json);
  }
  return replies;
}

TEST(Stream, RepliesToEachRequestUnderItsOwnId) {
  FakeVerifier verifier;
  const auto replies =
      replies_to({line("a", "k").dump(), line("b", "k").dump(), line("c", "other").dump(), "",
                  line("d", "bad").dump(), R"({"id": "e"})", "no JSON"},
                 verifier);
  ASSERT_EQ(replies.size(), 6u);
  for (const char* id : {"a", "b", "c"}) {
    const Json& reply = replies.find(id)->second;
    EXPECT_EQ(reply["verdict"]["candidate"], id);
    EXPECT_EQ(reply["provenance"]["program"], "musacoder 0.1.0");
    EXPECT_EQ(reply["reward"], 1.0);
  }
  EXPECT_EQ(replies.find("d")->second["error"], "the task is none");
  EXPECT_THAT(replies.find("e")->second["error"], HasSubstr("needs \"answer\""));
  EXPECT_THAT(replies.find("")->second["error"], HasSubstr("JSON object"));
}

TEST(Stream, DescribesTheProgram) {
  std::istringstream in(R"({"id": "a", "verb": "about"})");
  std::ostringstream out;
  FakeVerifier verifier;
  serve_stream(in, out, verifier, {.jobs = 3, .about = "this one"});
  EXPECT_EQ(Json::parse(out.str()), (Json{{"id", "a"}, {"about", "this one"}, {"jobs", 3}}));
}

TEST(Stream, CancelsARequest) {
  FakeVerifier verifier;
  const auto replies =
      replies_to({line("a", "hang").dump(), R"({"verb": "cancel", "id": "nobody"})",
                  R"({"verb": "cancel", "id": "a"})", line("b", "k").dump()},
                 verifier, 1);
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_EQ(replies.find("a")->second["kind"], "cancelled");
  EXPECT_EQ(replies.find("b")->second["reward"], 1.0);
}

TEST(Stream, CancelsNothingWithoutAStringId) {
  FakeVerifier verifier;
  Json numbered = line("", "k");
  numbered["id"] = 7;
  const auto replies = replies_to(
      {numbered.dump(), R"({"verb": "cancel", "id": 7})", R"({"verb": "cancel"})"}, verifier);
  EXPECT_EQ(replies.count(""), 3u);
  for (const auto& [id, reply] : replies) EXPECT_THAT(reply["error"], HasSubstr("\"id\""));
}

TEST(Stream, EndsARequestAtItsDeadline) {
  FakeVerifier verifier;
  Json late = line("a", "hang");
  late["deadline_s"] = 0.01;
  const auto replies = replies_to({late.dump()}, verifier);
  EXPECT_EQ(replies.find("a")->second["kind"], "late");
}

TEST(Stream, MeasuresAPreparedCandidateInBase64) {
  FakeVerifier verifier;
  const auto replies = replies_to(
      {R"({"verb": "measure", "id": "a", "prepared": "cGFydHM="})",
       R"({"verb": "measure", "id": "b", "prepared": "?"})", R"({"verb": "measure", "id": "c"})"},
      verifier);
  EXPECT_EQ(replies.find("a")->second["verdict"]["task"], "parts");
  EXPECT_THAT(replies.find("b")->second["error"], HasSubstr("not base64"));
  EXPECT_THAT(replies.find("c")->second["error"], HasSubstr("needs \"prepared\""));
}

TEST(Stream, StopsReadingWhileTooManyRequestsAreOpen) {
  FakeVerifier verifier;
  std::string text;
  for (int i = 0; i < 50; ++i) text += line(std::to_string(i), std::to_string(i)).dump() + "\n";
  std::istringstream in(text);
  std::ostringstream out;
  serve_stream(in, out, verifier, {.jobs = 2, .open_max = 3});
  const std::string written = out.str();
  EXPECT_EQ(std::ranges::count(written, '\n'), 50);
  EXPECT_EQ(verifier.runs, 50);
}

}  // namespace
}  // namespace mc::service
