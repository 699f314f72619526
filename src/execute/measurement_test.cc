// SPDX-License-Identifier: Apache-2.0
#include "execute/measurement.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "worker/session_impl.h"

namespace mc::execute {
namespace {

using worker::Channel;
using worker::kOutputTailBytes;
using worker::OutputTail;
using worker::ReportSocket;

using Json = nlohmann::json;

constexpr const char* kOk = R"({"ok": true})";
constexpr const char* kRefused =
    R"({"ok": false, "error": {"kind": "exception", "type": "Error", "message": "cannot"}})";
constexpr const char* kNoRoom =
    R"({"ok": false, "error": {"kind": "oom", "type": "Error", "message": "no room"}})";

// What a process answers to each operation, one question after the other; the last answer stays.
using Script = std::map<std::string, std::vector<std::string>>;

bool read_all(int socket, void* data, size_t size) {
  auto* bytes = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = ::read(socket, bytes, size);
    if (got <= 0) return false;
    bytes += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

// A message, with a descriptor as its region.
bool send_message(int socket, const std::string& text) {
  const auto length = static_cast<uint32_t>(text.size());
  std::string frame(sizeof length, '\0');
  std::memcpy(frame.data(), &length, sizeof length);
  frame += text;
  iovec part{frame.data(), frame.size()};
  std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof socket);
  std::memcpy(CMSG_DATA(header), &socket, sizeof socket);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(frame.size());
}

int serve(int socket, const Script& script) {
  std::map<std::string, size_t> asked;
  uint32_t length = 0;
  while (read_all(socket, &length, sizeof length)) {
    std::string question(length, '\0');
    if (!read_all(socket, question.data(), length)) return 1;
    const std::string operation = Json::parse(question).at("op");
    const auto& answers = script.at(operation);
    const std::string& answer = answers[std::min(asked[operation]++, answers.size() - 1)];
    if (!send_message(socket, answer)) return 1;
  }
  return 0;
}

Session start(const Script& script) {
  auto output = OutputTail::create(kOutputTailBytes).value();
  auto ends = Channel::create_pair().value();
  auto report = ReportSocket::create().value();
  const int socket = ends.second.get();
  sandbox::Child child =
      sandbox::Child::start(sandbox::lenient({}), std::array{socket}, [&](const auto&) {
        return serve(socket, script);
      }).value();
  return Session(std::unique_ptr<Session::Impl>(new Session::Impl{
      std::move(output.first), std::move(report.first), std::move(ends.first), std::move(child)}));
}

constexpr const char* kInit =
    R"({"ok": true, "init": {}, "init_seed": 1, "constants": [], "training": true, "state": []})";
constexpr const char* kInputs =
    R"({"ok": true, "inputs": {}, "digest": "", "outputs_bytes_max": 1, "returns_inputs": false})";
constexpr const char* kBuilt = R"({"ok": true, "missing": [], "unmatched": [], "own": []})";
constexpr const char* kRan =
    R"({"ok": true, "outputs": {}, "buffers": [], "aten": {}, "sticky": ""})";
const Script kJudge = {{"init", {kInit}},
                       {"trial", {kInputs}},
                       {"check", {R"({"ok": true, "passed": true, "checks": []})"}}};
const Script kContestant = {{"load", {kOk}}, {"build", {kBuilt}}, {"run", {kRan}}};

Result<Measured> measure(const Script& judge_script, const Pause& pause = [](Session&) {}) {
  JudgePlan plan;
  plan.shapes.push_back({"native", {}, {}});
  plan.trials = {{0, 0, "native"}, {1, 0, "signed"}};
  Judge judge(start(judge_script), plan);
  const StageLimits limits;
  const Program program{"", {}, [](std::string_view, uint64_t) { return task::Place{}; }};
  const RunPolicy policy{"test", {"*"}, 0};
  return Measurement(limits, program, judge, policy, 0, start(kContestant)).run(pause);
}

Script with(Script script, const std::string& operation, std::vector<std::string> answers) {
  script[operation] = std::move(answers);
  return script;
}

TEST(Measurement, PassesWhatTheJudgePasses) {
  const auto measured = measure(kJudge);
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_TRUE(std::holds_alternative<task::Passed>(measured->outcome));
  EXPECT_TRUE(measured->contestant.has_value());
  EXPECT_FALSE(measured->check_error.has_value());
}

TEST(Measurement, PausesBeforeEachTrial) {
  int pauses = 0;
  ASSERT_TRUE(measure(kJudge, [&](Session& contestant) {
    ++pauses;
    contestant.rest();  // Goes on when it is asked.
  }));
  EXPECT_EQ(pauses, 2);
}

TEST(Measurement, IsWrongAndSaysWhyWhereTheJudgeCannotCheck) {
  const std::string checked = kJudge.at("check").at(0);
  for (const char* answer : {kRefused, kNoRoom, "[]"}) {
    const auto measured = measure(with(kJudge, "check", {checked, answer}));
    ASSERT_TRUE(measured) << measured.error().message;
    EXPECT_TRUE(measured->check_error.has_value());
    const auto* wrong = std::get_if<task::Wrong>(&measured->outcome);
    ASSERT_NE(wrong, nullptr);
    EXPECT_EQ(wrong->q, 0);
    ASSERT_EQ(wrong->trials.size(), 2u);
    EXPECT_FALSE(wrong->trials[0].passed);
    EXPECT_EQ(wrong->trials[1].checks.at(0).problem, "malformed");
  }
}

TEST(Measurement, IsOutOfMemoryWhereTheJudgeHasRoomOnceTheContestantEnded) {
  const std::string given = kJudge.at("trial").at(0);
  const auto measured = measure(with(kJudge, "trial", {given, kNoRoom, given}));
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_TRUE(std::holds_alternative<task::OutOfMemory>(measured->outcome));
}

TEST(Measurement, FailsWhereTheJudgeHasNoRoomEitherWay) {
  const auto measured = measure(with(kJudge, "trial", {kNoRoom}));
  ASSERT_FALSE(measured);
  EXPECT_EQ(measured.error().code, ErrorCode::kExhausted);
}

TEST(Measurement, FailsWhereTheJudgeFailsBeforeItChecks) {
  for (const char* operation : {"init", "trial"}) {
    EXPECT_FALSE(measure(with(kJudge, operation, {kRefused}))) << operation;
  }
}

}  // namespace
}  // namespace mc::execute
