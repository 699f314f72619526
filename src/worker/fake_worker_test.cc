// SPDX-License-Identifier: Apache-2.0
//
// The fake, which tests of other layers rely on, shows a session the same behaviour as a real
// child, and the session keeps its contract with it.
#include "worker/fakes/fake_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <optional>

namespace mc::worker {
namespace {

using Begin = JudgeBeginRequest;
using Init = JudgeInitRequest;
using ::testing::ElementsAre;
constexpr std::chrono::seconds kLimit{20};

class FakeWorkerTest : public testing::Test {
 protected:
  CallResult call(Session& session) { return session.call(Begin{7}.to_json(), nullptr, kLimit); }

  FakeTime time_;
  FakeWorker worker_{time_};
};

TEST_F(FakeWorkerTest, RespondsAccordingToTheDefinition) {
  worker_.on<Begin>([](const Begin& asked, const Fd&) {
    return JudgeBeginResponse{{.call_memory = {.inputs = static_cast<int64_t>(asked.seed)}}};
  });
  Session session = worker_.session();
  CallResult response = call(session);
  ASSERT_TRUE(std::holds_alternative<Reply>(response));
  const auto begun = parse_response<Begin>(std::get<Reply>(std::move(response)));
  ASSERT_TRUE(begun);
  EXPECT_EQ(begun->body.plan.call_memory.inputs, 7);
  EXPECT_THAT(worker_.asked(), ElementsAre("begin"));
}

TEST_F(FakeWorkerTest, SendsMessagesLargerThanASocketBuffer) {
  const std::string large(8 << 20, 'x');
  worker_.on<BaselineTimeCallsRequest>([&](const auto& asked, const Fd& region) {
    EXPECT_EQ(asked.inputs.json.size(), large.size() + 2);
    EXPECT_TRUE(region.is_open());
    return BaselineTimeCallsResponse();
  });
  worker_.say<Init>({.init = {"\"" + large + "\""}});
  Session session = worker_.session();
  const Fd region = make_memfd("test", 8).value();
  const BaselineTimeCallsRequest request{.inputs = {"\"" + large + "\""}};
  EXPECT_TRUE(std::holds_alternative<Reply>(session.call(request.to_json(), &region, kLimit)));
  CallResult response = session.call(Init().to_json(), nullptr, kLimit);
  const auto init = parse_response<Init>(std::get<Reply>(std::move(response)));
  ASSERT_TRUE(init) << init.error().message;
  EXPECT_EQ(init->body.init.json.size(), large.size() + 2);
  EXPECT_TRUE(init->region.is_open());
}

TEST_F(FakeWorkerTest, SendsAnErrorReplyAndStaysAlive) {
  worker_.fail<Begin>(ErrorReply{"oom", "", {"Error", "no room", {}, {}}});
  Session session = worker_.session();
  for (int i = 0; i < 2; ++i) {
    const CallResult response = call(session);
    const auto* refusal = std::get_if<ErrorReply>(&response);
    ASSERT_NE(refusal, nullptr);
    EXPECT_EQ(refusal->kind, "oom");
    EXPECT_EQ(refusal->exception.message, "no room");
  }
}

TEST_F(FakeWorkerTest, DiesAndStaysDead) {
  worker_.fail<Begin>(ProcessEnd{0, 3});
  Session session = worker_.session();
  for (int i = 0; i < 2; ++i) {
    const CallResult response = call(session);
    const auto* death = std::get_if<ProcessEnd>(&response);
    ASSERT_NE(death, nullptr) << response.index();
    EXPECT_EQ(death->exit_code, 3);
  }
  EXPECT_EQ(worker_.num_alive(), 0);
}

TEST_F(FakeWorkerTest, IsEndedByTheSessionsLimitWhereItHangs) {
  worker_.fail<Begin>(Hangs());
  Session session = worker_.session();
  const CallResult response = call(session);
  const auto* overrun = std::get_if<LimitExceeded>(&response);
  ASSERT_NE(overrun, nullptr) << response.index();
  EXPECT_EQ(overrun->limit, Limit::kWall);
  EXPECT_EQ(worker_.num_alive(), 0);
}

TEST_F(FakeWorkerTest, IsKilledWhenTheTimeForAllResponsesIsUsedUp) {
  TimeBudget time{std::chrono::milliseconds(100)};
  worker_.fail<Begin>(Hangs());
  for (int i = 0; i < 2; ++i) {  // The second process has no time left.
    Session session = worker_.session();
    session.charge(&time);
    const CallResult response = call(session);
    const auto* overrun = std::get_if<LimitExceeded>(&response);
    ASSERT_NE(overrun, nullptr) << response.index();
    EXPECT_EQ(overrun->limit, Limit::kAllCalls);
    EXPECT_LE(time.left.count(), 0);
  }
  EXPECT_EQ(worker_.num_alive(), 0);
}

TEST_F(FakeWorkerTest, IsKilledAfterAMalformedMessage) {
  worker_.say_raw<Begin>("no JSON");
  Session session = worker_.session();
  EXPECT_TRUE(std::holds_alternative<MalformedReply>(call(session)));
  EXPECT_EQ(worker_.num_alive(), 0);
}

TEST_F(FakeWorkerTest, HasAResponseRejectedThatTheDefinitionForbids) {
  const std::string body = JudgeRestResponse().to_json();
  for (const auto& [json, has_region] :
       {std::pair(body, true), {R"({"ok": true, "seed": 1})", false}}) {
    worker_.say_raw<Begin>(json, has_region);
    Session session = worker_.session();
    auto response = call(session);
    ASSERT_TRUE(std::holds_alternative<Reply>(response));
    const auto closed = parse_response<JudgeRestRequest>(std::get<Reply>(std::move(response)));
    ASSERT_FALSE(closed);
    EXPECT_EQ(closed.error().code, ErrorCode::kProtocol);
  }
  worker_.say_raw<Init>(JudgeInitResponse().to_json(), false);
  Session session = worker_.session();
  auto response = session.call(Init().to_json(), nullptr, kLimit);
  EXPECT_FALSE(parse_response<Init>(std::get<Reply>(std::move(response))));
}

TEST_F(FakeWorkerTest, RespondsLaterWhileFakeTimePasses) {
  bool is_ready = false;
  worker_.on<Begin>([&](const Begin&, const Fd&) -> Reaction {
    if (!is_ready) return Later();
    return JudgeBeginResponse().to_json();
  });
  Session session = worker_.session();
  const Clock clock = time_.clock();
  const auto start = clock.now();
  session.send(Begin().to_json(), nullptr, kLimit);
  EXPECT_FALSE(session.has_news(std::chrono::seconds(2)));
  EXPECT_EQ(clock.now() - start, std::chrono::seconds(2));
  is_ready = true;
  EXPECT_TRUE(session.has_news(std::chrono::seconds(2)));
  EXPECT_EQ(clock.now() - start, std::chrono::seconds(2));
  EXPECT_TRUE(std::holds_alternative<Reply>(session.receive(kLimit)));
}

TEST_F(FakeWorkerTest, IsSuspendedUntilTheNextRequest) {
  worker_.say<Begin>({});
  Session session = worker_.session();
  session.suspend();
  EXPECT_TRUE(worker_.is_suspended());
  EXPECT_TRUE(std::holds_alternative<Reply>(call(session)));
  EXPECT_FALSE(worker_.is_suspended());
}

TEST_F(FakeWorkerTest, IsKilledWhenSuspendedWhileItOwesAResponse) {
  worker_.say<Begin>({});
  Session session = worker_.session();
  session.send(Begin().to_json(), nullptr, kLimit);
  session.suspend();
  EXPECT_EQ(worker_.num_alive(), 0);
}

TEST_F(FakeWorkerTest, LivesAsLongAsItsSession) {
  worker_.say<Begin>({});
  std::optional<Session> first = worker_.session();
  const Session second = worker_.session();
  EXPECT_EQ(worker_.num_alive(), 2);
  first.reset();
  EXPECT_EQ(worker_.num_alive(), 1);
  EXPECT_EQ(worker_.num_sessions(), 2);
}

TEST(Clock, SleepsInFakeTime) {
  const FakeTime time;
  const Clock clock = time.clock();
  const auto deadline = clock.in(3600);
  clock.sleep(Clock::Seconds(3599));
  EXPECT_LT(clock.now(), deadline);
  time.pass(Clock::Seconds(1));
  EXPECT_EQ(clock.now(), deadline);
}

}  // namespace
}  // namespace mc::worker
