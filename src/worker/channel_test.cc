// SPDX-License-Identifier: Apache-2.0
#include "worker/channel.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <thread>

namespace mc::worker {
namespace {

// Waits for at most five seconds.
Status wait(int fd, short events) {
  pollfd poller{fd, events, 0};
  if (::poll(&poller, 1, 5000) > 0) return ok();
  return Error{ErrorCode::kTimeout, "no news"};
}

void write_frame(int fd, uint32_t length, const std::string& bytes) {
  std::string frame(sizeof length, '\0');
  std::memcpy(frame.data(), &length, sizeof length);
  frame += bytes;
  ASSERT_EQ(::write(fd, frame.data(), frame.size()), static_cast<ssize_t>(frame.size()));
}

TEST(Channel, ReceivesAMessage) {
  auto ends = Channel::create_pair();
  ASSERT_TRUE(ends);
  write_frame(ends->second.get(), 4, "{}  ");
  EXPECT_EQ(ends->first.receive(wait).value().json, "{}  ");
}

TEST(Channel, CarriesALongMessageWithADescriptor) {
  auto ends = Channel::create_pair();
  auto other = Channel::create_pair();
  ASSERT_TRUE(ends && other);
  const std::string json(kMessageBytesMax, 'x');
  const Fd region = std::move(make_memfd("region", 10)).value();
  std::string received;
  std::jthread reader([&] {
    char block[1 << 16];
    while (received.size() < json.size() + 4) {
      const ssize_t size = ::read(ends->second.get(), block, sizeof block);
      if (size <= 0) break;
      received.append(block, static_cast<size_t>(size));
    }
  });
  EXPECT_TRUE(ends->first.send(json, {region.get()}, wait));
  reader.join();
  EXPECT_EQ(received.substr(4), json);
}

TEST(Channel, RefusesALengthOverTheLimit) {
  auto ends = Channel::create_pair();
  ASSERT_TRUE(ends);
  write_frame(ends->second.get(), 0xffffffff, "");
  EXPECT_EQ(ends->first.receive(wait).error().code, ErrorCode::kProtocol);
}

TEST(Channel, RefusesAMessageThatNestsTooDeeply) {
  auto ends = Channel::create_pair();
  ASSERT_TRUE(ends);
  const std::string json = R"({"ok": true, "outputs": )" + std::string(60000, '[') + "]}";
  write_frame(ends->second.get(), static_cast<uint32_t>(json.size()), json);
  EXPECT_EQ(ends->first.receive(wait).error().code, ErrorCode::kProtocol);
}

TEST(Channel, SeesAClosedEnd) {
  auto ends = Channel::create_pair();
  ASSERT_TRUE(ends);
  write_frame(ends->second.get(), 100, "too short");
  ends->second.reset();
  EXPECT_EQ(ends->first.receive(wait).error().code, ErrorCode::kUnavailable);
}

TEST(Channel, GivesUpWhenTheWaitDoes) {
  auto ends = Channel::create_pair();
  ASSERT_TRUE(ends);
  const auto impatient = [](int, short) -> Status { return Error{ErrorCode::kTimeout, "late"}; };
  EXPECT_EQ(ends->first.receive(impatient).error().code, ErrorCode::kTimeout);
}

}  // namespace
}  // namespace mc::worker
