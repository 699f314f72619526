// SPDX-License-Identifier: Apache-2.0
#include "worker/session.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "sandbox/testing/test_child.h"
#include "worker/session_impl.h"

namespace mc::worker {
namespace {

constexpr std::chrono::seconds kTestTimeMax{20};
using Counter = std::atomic<uint64_t>;

// Responds to every request, while another thread of it counts.
[[noreturn]] void serve(int socket, Counter& counter) {
  std::thread([&counter] {
    for (;;) ++counter;
  }).detach();
  const std::string response = R"({"ok": true})";
  const auto length = static_cast<uint32_t>(response.size());
  std::array<char, 64> request{};
  while (read(socket, request.data(), request.size()) > 0) {
    const bool is_sent = write(socket, &length, sizeof length) > 0 &&
                         write(socket, response.data(), response.size()) > 0;
    if (!is_sent) break;
  }
  _exit(0);
}

struct Started {
  Session session;
  pid_t init;
};

Result<Started> start(Counter& counter) {
  MC_TRY(auto output, OutputTail::create(kOutputTailBytes), "test");
  MC_TRY(auto ends, Channel::create_pair(), "test");
  const int socket = ends.second.get();
  MC_TRY(sandbox::Child child,
         sandbox::Child::start(sandbox::lenient({}), std::array{socket},
                               [&](const auto&) -> int { serve(socket, counter); }),
         "test");
  const pid_t init = child.init();
  Session session(std::unique_ptr<Session::Impl>(new Session::Impl{
      std::move(output.first), std::move(ends.first), handle_of(std::move(child))}));
  return Started{std::move(session), init};
}

class SessionAtRest : public testing::Test {
 protected:
  void SetUp() override {
    auto started = start(counter_);
    ASSERT_TRUE(started) << started.error().message;
    session_ = std::make_unique<Session>(std::move(started->session));
    init_ = started->init;
    ASSERT_TRUE(answers());
  }
  ~SessionAtRest() override { munmap(&counter_, sizeof counter_); }

  bool answers() {
    return std::holds_alternative<Reply>(session_->call("{}", nullptr, kTestTimeMax));
  }

  bool counts() const {
    const uint64_t before = counter_;
    return await([&] { return counter_ > before; });
  }
  bool stands_still() const { return sandbox::comes_to_rest(init_); }
  static bool await(const std::function<bool()>& reached) {
    const auto deadline = std::chrono::steady_clock::now() + kTestTimeMax;
    for (; !reached(); std::this_thread::yield()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
    }
    return true;
  }

  Counter& counter_ = *static_cast<Counter*>(
      mmap(nullptr, sizeof(Counter), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::unique_ptr<Session> session_;
  pid_t init_ = 0;
};

TEST(Session, KillsAChildThatSendsBeforeARequest) {
  auto ends = Channel::create_pair();
  auto output = OutputTail::create(kOutputTailBytes);
  ASSERT_TRUE(ends && output);
  const int socket = ends->second.get();
  auto child = sandbox::Child::start(sandbox::lenient({}), std::array{socket}, [&](const auto&) {
    (void)write(socket, "\0", 1);
    for (;;) pause();
    return 0;
  });
  ASSERT_TRUE(child);
  while (!ends->first.has_unread()) std::this_thread::yield();
  Session session(std::unique_ptr<Session::Impl>(new Session::Impl{
      std::move(output->first), std::move(ends->first), handle_of(std::move(*child))}));
  output->second.reset();
  const CallResult response = session.call(R"({"op": "load"})", nullptr, kTestTimeMax);
  ASSERT_TRUE(std::holds_alternative<MalformedReply>(response));
  EXPECT_EQ(std::get<MalformedReply>(response).why, "it spoke before it was asked");
}

TEST_F(SessionAtRest, IsSuspendedUntilTheNextRequest) {
  for (int i = 0; i < 3; ++i) {
    session_->suspend();
    session_->suspend();
    EXPECT_TRUE(stands_still());
    EXPECT_TRUE(answers());
    EXPECT_TRUE(answers());
    EXPECT_TRUE(counts());
  }
}

TEST_F(SessionAtRest, ContinuesAfterWake) {
  session_->suspend();
  session_->resume();
  session_->resume();
  EXPECT_TRUE(counts());
  EXPECT_TRUE(answers());
}

TEST_F(SessionAtRest, IsKilledWhereItOwesAResponse) {
  session_->send("{}", nullptr, kTestTimeMax);
  session_->suspend();
  const CallResult response = session_->call("{}", nullptr, kTestTimeMax);
  EXPECT_FALSE(std::holds_alternative<Reply>(response)) << response.index();
}

TEST_F(SessionAtRest, ReportsThatItDied) {
  session_->suspend();
  kill(init_, SIGKILL);
  EXPECT_TRUE(session_->has_news(std::chrono::milliseconds(kTestTimeMax)));
  session_->suspend();
  const CallResult response = session_->call("{}", nullptr, kTestTimeMax);
  const auto* death = std::get_if<ProcessEnd>(&response);
  ASSERT_NE(death, nullptr) << response.index();
  EXPECT_EQ(death->signal, SIGKILL);
}

}  // namespace
}  // namespace mc::worker
