// SPDX-License-Identifier: Apache-2.0
#include "execute/session.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "execute/session_impl.h"

namespace mc::execute {
namespace {

constexpr std::chrono::seconds kTestTimeMax{20};
using Counter = std::atomic<uint64_t>;

// Answers whatever it is asked, while a thread of its counts.
[[noreturn]] void serve(int socket, Counter& counter) {
  std::thread([&counter] {
    for (;;) ++counter;
  }).detach();
  const std::string answer = R"({"ok": true})";
  const auto length = static_cast<uint32_t>(answer.size());
  std::array<char, 64> question{};
  while (read(socket, question.data(), question.size()) > 0) {
    const bool is_sent = write(socket, &length, sizeof length) > 0 &&
                         write(socket, answer.data(), answer.size()) > 0;
    if (!is_sent) break;
  }
  _exit(0);
}

Result<Session> start(Counter& counter) {
  MC_TRY(auto output, OutputTail::create(kOutputTailBytes), "test");
  MC_TRY(auto ends, Channel::create_pair(), "test");
  MC_TRY(const Fd report, make_memfd("test-report", kReportBytes), "test");
  MC_TRY(Mapping mapping, Mapping::create(report, kReportBytes), "test");
  const int socket = ends.second.get();
  MC_TRY(sandbox::Child child,
         sandbox::Child::start(sandbox::lenient({}), std::array{socket},
                               [&](const auto&) -> int { serve(socket, counter); }),
         "test");
  return Session(std::unique_ptr<Session::Impl>(new Session::Impl{
      std::move(output.first), std::move(mapping), std::move(ends.first), std::move(child)}));
}

bool is_reply(const Answer& answer) { return std::holds_alternative<Reply>(answer); }

TEST(Session, RestsUntilItIsAskedAgain) {
  auto& counter = *static_cast<Counter*>(
      mmap(nullptr, sizeof(Counter), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  auto session = start(counter);
  ASSERT_TRUE(session) << session.error().message;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(is_reply(session->ask("{}", nullptr, kTestTimeMax)));
    session->rest();
    session->rest();
    usleep(50'000);  // A signal takes some microseconds to arrive.
    const uint64_t before = counter;
    usleep(50'000);
    EXPECT_EQ(counter, before);
    EXPECT_TRUE(is_reply(session->ask("{}", nullptr, kTestTimeMax)));
    EXPECT_TRUE(is_reply(session->ask("{}", nullptr, kTestTimeMax)));
    usleep(50'000);
    EXPECT_GT(counter, before);
  }
  munmap(&counter, sizeof counter);
}

}  // namespace
}  // namespace mc::execute
