// SPDX-License-Identifier: Apache-2.0
#include "worker/report_socket.h"

#include <cstdio>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mc::worker {
namespace {

struct Ends {
  ReportSocket ours;
  Fd theirs;
  char lead[64];
};

Ends take_key() {
  auto made = ReportSocket::create();
  EXPECT_TRUE(made);
  Ends ends{std::move(made->first), std::move(made->second), {}};
  uint64_t key[4];
  EXPECT_EQ(::recv(ends.theirs.get(), key, sizeof key, 0), static_cast<ssize_t>(sizeof key));
  std::snprintf(ends.lead, sizeof ends.lead, "{\"key\":\"%016zx%016zx\",", size_t{key[0]},
                size_t{key[1]});
  return ends;
}

void say(const Ends& ends, const std::string& line) {
  EXPECT_EQ(::send(ends.theirs.get(), line.data(), line.size(), 0),
            static_cast<ssize_t>(line.size()));
}

TEST(ReportSocket, TakesTheKeyOffTrueLines) {
  Ends ends = take_key();
  say(ends, ends.lead + std::string("\"kind\":\"shared_race\"}"));
  say(ends, ends.lead + std::string("\"call\":1}"));
  EXPECT_EQ(ends.ours.text(), "{\"kind\":\"shared_race\"}\n{\"call\":1}\n");
}

TEST(ReportSocket, CallsALineWithoutTheKeyForged) {
  Ends ends = take_key();
  say(ends, "{\"key\":\"00000000000000000000000000000000\",\"call\":1}");
  EXPECT_EQ(ends.ours.text(), "{\"kind\":\"forged_report\"}\n");
}

TEST(ReportSocket, KeepsWhatWasSentBeforeTheOtherEndWasClosed) {
  Ends ends = take_key();
  say(ends, ends.lead + std::string("\"kind\":\"deadlock\"}"));
  ends.theirs.reset();
  EXPECT_EQ(ends.ours.text(), "{\"kind\":\"deadlock\"}\n");
  EXPECT_EQ(ends.ours.text(), "{\"kind\":\"deadlock\"}\n");
}

TEST(ReportSocket, HasAnotherKeyEachTime) { EXPECT_STRNE(take_key().lead, take_key().lead); }

}  // namespace
}  // namespace mc::worker
